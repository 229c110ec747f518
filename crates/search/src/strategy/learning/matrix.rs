//! Defines matrices, stored row by row, and their products, for networks of a few thousand weights.

/// A matrix with its rows one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::strategy) struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub numbers: Vec<f32>,
}

impl Matrix {
    pub fn zeros(rows: usize, columns: usize) -> Matrix {
        Matrix { rows, columns, numbers: vec![0.0; rows * columns] }
    }

    /// A matrix of rows with `columns` numbers each.
    pub fn from_rows<'a>(columns: usize, rows: impl IntoIterator<Item = &'a [f32]>) -> Matrix {
        let mut matrix = Matrix { columns, ..Matrix::default() };
        for row in rows {
            matrix.rows += 1;
            matrix.numbers.extend_from_slice(row);
        }
        assert_eq!(matrix.numbers.len(), matrix.rows * columns, "all rows have the width of the matrix");
        matrix
    }

    pub fn row(&self, at: usize) -> &[f32] {
        &self.numbers[at * self.columns..][..self.columns]
    }

    pub fn row_mut(&mut self, at: usize) -> &mut [f32] {
        &mut self.numbers[at * self.columns..][..self.columns]
    }

    /// Adds a vector to every row.
    pub fn add_to_rows(&mut self, vector: &[f32]) {
        for at in 0..self.rows {
            self.row_mut(at).iter_mut().zip(vector).for_each(|(own, other)| *own += other);
        }
    }

    /// Adds all rows to a vector.
    pub fn add_rows_to(&self, vector: &mut [f32]) {
        for at in 0..self.rows {
            vector.iter_mut().zip(self.row(at)).for_each(|(sum, own)| *sum += own);
        }
    }

    /// Multiplies with a matrix of `columns` columns.
    pub fn times(&self, right: &[f32], columns: usize) -> Matrix {
        let mut product = Matrix::zeros(self.rows, columns);
        add_product(&self.numbers, right, &mut product.numbers, [self.rows, self.columns, columns]);
        product
    }

    /// Multiplies with the transpose of a matrix of `rows` rows.
    pub fn times_transposed(&self, right: &[f32], rows: usize) -> Matrix {
        self.times(&transposed(right, rows, self.columns), rows)
    }

    /// Adds the product of the transpose of this matrix and another matrix to `sum`.
    pub fn add_transposed_times(&self, right: &Matrix, sum: &mut [f32]) {
        let left = transposed(&self.numbers, self.rows, self.columns);
        add_product(&left, &right.numbers, sum, [self.columns, self.rows, right.columns]);
    }
}

/// The transpose of a matrix.
pub(super) fn transposed(numbers: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| numbers[row * columns + column])).collect()
}

/// Adds the product of a matrix of `rows` × `inner` and one of `inner` × `columns` to `sum`. Four
/// rows of `right` at a time are added to a row of the sum, which the compiler vectorises.
fn add_product(left: &[f32], right: &[f32], sum: &mut [f32], [rows, inner, columns]: [usize; 3]) {
    for row in 0..rows {
        let (left, sum) = (&left[row * inner..][..inner], &mut sum[row * columns..][..columns]);
        let mut at = 0;
        while let Some(&[a, b, c, d]) = left.get(at..at + 4) {
            let [first, second, third, fourth] =
                [at, at + 1, at + 2, at + 3].map(|at| &right[at * columns..][..columns]);
            for (column, sum) in sum.iter_mut().enumerate() {
                *sum += a * first[column] + b * second[column] + c * third[column] + d * fourth[column];
            }
            at += 4;
        }
        for (factor, at) in left[at..].iter().zip(at..) {
            let right = &right[at * columns..][..columns];
            sum.iter_mut().zip(right).for_each(|(sum, right)| *sum += factor * right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(rows: usize, columns: usize) -> Matrix {
        let numbers = (0..rows * columns).map(|at| (at * 7 % 11) as f32 - 5.0).collect();
        Matrix { rows, columns, numbers }
    }

    /// The product by its definition.
    fn product(left: &Matrix, right: &Matrix) -> Matrix {
        let mut product = Matrix::zeros(left.rows, right.columns);
        for row in 0..left.rows {
            for column in 0..right.columns {
                let terms = (0..left.columns).map(|at| left.row(row)[at] * right.row(at)[column]);
                product.row_mut(row)[column] = terms.sum();
            }
        }
        product
    }

    fn transpose(own: &Matrix) -> Matrix {
        let numbers = transposed(&own.numbers, own.rows, own.columns);
        Matrix { rows: own.columns, columns: own.rows, numbers }
    }

    /// The numbers are small integers, so sums are exact in any order.
    #[test]
    fn products_of_all_shapes() {
        for [rows, inner, columns] in [[1, 1, 1], [3, 4, 5], [2, 7, 9], [5, 6, 1], [4, 0, 3], [0, 2, 2]] {
            let (left, right) = (counting(rows, inner), counting(inner, columns));
            let expected = product(&left, &right);
            assert_eq!(left.times(&right.numbers, columns), expected);
            assert_eq!(left.times_transposed(&transpose(&right).numbers, columns), expected);
            let mut sum = Matrix { numbers: vec![1.0; rows * columns], ..expected.clone() };
            transpose(&left).add_transposed_times(&right, &mut sum.numbers);
            assert!(sum.numbers.iter().zip(&expected.numbers).all(|(own, product)| *own == product + 1.0));
        }
    }

    #[test]
    fn rows_and_vectors_are_added() {
        let mut matrix = Matrix::from_rows(2, [&[1.0, 2.0][..], &[3.0, 4.0]]);
        matrix.add_to_rows(&[10.0, 20.0]);
        assert_eq!(matrix.numbers, [11.0, 22.0, 13.0, 24.0]);
        let mut sum = [1.0, 1.0];
        matrix.add_rows_to(&mut sum);
        assert_eq!(sum, [25.0, 47.0]);
    }
}
