//! The phases `judge` and `fit` of `tilewright train`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tilewright::report::models::page;
use tilewright::train::data;
use tilewright::train::examples::{Program, programs};
use tilewright::train::judge::{Judgement, ModelKind, judge, means, train, training_programs};

use crate::atomic_file;
use crate::failure::Failure;
use crate::output::{print, print_error_line, spinner};
use crate::pending_file::PendingFile;

/// Reads all measured schedules and computes their features.
pub fn read(files: &[PathBuf]) -> Result<Vec<Program>, Failure> {
    let (spinner, begun) = (spinner("computing features"), Instant::now());
    let mut found: Vec<Program> = Vec::new();
    for path in files {
        let records = data::read(path)
            .map_err(|error| Failure::Input(format!("{} cannot be read: {error}", path.display())))?;
        found.extend(programs(&records));
    }
    spinner.finish_and_clear();
    if found.is_empty() {
        return Err(Failure::Input(
            "there are no measured schedules yet; run `tilewright train collect`".to_owned(),
        ));
    }
    let schedules: usize = found.iter().map(|program| program.schedules.len()).sum();
    let seconds = begun.elapsed().as_secs_f64();
    print_error_line(&format!(
        "{schedules} schedules of {} programs; applied, with features, in {seconds:.1} s",
        found.len()
    ));
    // A model is for one kind of machines.
    let family = found[0].family.clone();
    found.retain(|program| program.family == family);
    Ok(found)
}

/// Judges all models and prints a table.
pub fn run(found: &[Program], report: Option<&PendingFile>) -> Result<Vec<Judgement>, Failure> {
    let family = &found[0].family;
    let judgements = judge(found, family, &mut |kind| print_error_line(&format!("training without {kind}")));
    let table = table(&judgements);
    print(&table)?;
    if let Some(file) = report {
        file.write(&page(family, &table, &judgements))?;
    }
    Ok(judgements)
}

/// One line for each kind and model: the mean rank correlation, and the chosen schedule's time.
fn table(judgements: &[Judgement]) -> String {
    let mut kinds: Vec<&str> = judgements.iter().map(|own| own.kind.as_str()).collect();
    kinds.dedup();
    kinds.sort_unstable();
    kinds.dedup();
    let mut text = String::from("not seen        programs");
    ModelKind::ALL.iter().for_each(|model| text.push_str(&format!("  {:>14}", model.name())));
    text.push('\n');
    let row = |name: &str, is_own: &dyn Fn(&Judgement) -> bool| {
        let of = |model: ModelKind| judgements.iter().filter(move |own| own.model == model);
        let count = of(ModelKind::Analytical).filter(|own| is_own(own)).count();
        let mut line = format!("{name:<15} {count:>8}");
        for model in ModelKind::ALL {
            let (correlation, chosen) = means(of(model).filter(|own| is_own(own)));
            line.push_str(&format!("  {correlation:>6.2} {chosen:>7.3}"));
        }
        line + "\n"
    };
    kinds.iter().for_each(|kind| text.push_str(&row(kind, &|own| own.kind == *kind)));
    text.push_str(&row("all", &|_| true));
    text.push_str(
        "\nFor each model: the mean rank correlation within a program, and how many times as long the \
         schedule takes\nthat it ranks first as the fastest measured one (geometric mean).\n",
    );
    text
}

/// Trains a kind of model with all random pipelines, and writes its weights.
pub fn fit(found: &[Program], kind: ModelKind, path: &Path) -> Result<(), Failure> {
    let weights = kind.part_of(&train(&training_programs(found, ""), &found[0].family));
    let text = weights.text().map_err(|error| Failure::Machine(error.to_string()))?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::Input(format!("{}: {error}", folder.display())))?;
    }
    atomic_file::write(path, &[text.as_bytes()])
        .map_err(|error| Failure::Input(format!("{} cannot be written: {error}", path.display())))?;
    print(&format!("{}: the {} model, trained with {}\n", path.display(), kind.name(), weights.origin))
}
