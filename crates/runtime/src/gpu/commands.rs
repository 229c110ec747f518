//! Executes the commands of generated code on the host. Evaluates the extents of loops and the
//! conditions of branches, and calls a function for every kernel launch.

use smallvec::SmallVec;
use tilewright_codegen::c_family::{Command, Launch};
use tilewright_ir::nest::{Atom, IndexExpr, LoopVarId};

use super::error::GpuError;

/// The variables of the host's loops that are being executed, outermost first.
#[derive(Debug, Default)]
pub(super) struct Variables(SmallVec<[(LoopVarId, i64); 4]>);

impl Variables {
    /// The value of a variable, if its loop is being executed.
    pub(super) fn get(&self, var: LoopVarId) -> Option<i64> {
        self.0.iter().find(|(name, _)| *name == var).map(|(_, value)| *value)
    }

    fn value(&self, index: &IndexExpr) -> Result<i64, GpuError> {
        let mut leaf = |atom: &Atom| match atom {
            Atom::Var(var) => self.get(*var),
            _ => None,
        };
        index.eval(&mut leaf).ok_or_else(|| GpuError::MissingOnHost("an extent or a condition".to_owned()))
    }

    fn all_hold(&self, conditions: &[IndexExpr]) -> Result<bool, GpuError> {
        for condition in conditions {
            if self.value(condition)? < 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Executes commands, and calls `launch` for one kernel after the other.
pub(super) fn run<'a>(
    commands: &'a [Command],
    launch: &mut dyn FnMut(&'a Launch, &Variables) -> Result<(), GpuError>,
) -> Result<(), GpuError> {
    run_with_variables(&mut Variables::default(), commands, launch)
}

fn run_with_variables<'a>(
    variables: &mut Variables,
    commands: &'a [Command],
    launch: &mut dyn FnMut(&'a Launch, &Variables) -> Result<(), GpuError>,
) -> Result<(), GpuError> {
    for command in commands {
        match command {
            Command::Launch(kernel) => launch(kernel, variables)?,
            Command::Repeat { var, extent, body } => {
                for at in 0..variables.value(extent)? {
                    variables.0.push((*var, at));
                    run_with_variables(variables, body, launch)?;
                    variables.0.pop();
                }
            }
            Command::Choose { conditions, then, otherwise } => {
                let chosen = if variables.all_hold(conditions)? { then } else { otherwise };
                run_with_variables(variables, chosen, launch)?;
            }
        }
    }
    Ok(())
}

/// All launches in a list of commands, whether or not a call reaches them.
pub(super) fn launches(commands: &[Command]) -> Vec<&Launch> {
    let mut found = Vec::new();
    for command in commands {
        match command {
            Command::Launch(launch) => found.push(launch),
            Command::Repeat { body, .. } => found.extend(launches(body)),
            Command::Choose { then, otherwise, .. } => {
                found.extend(launches(then));
                found.extend(launches(otherwise));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(kernel: &str) -> Command {
        Command::Launch(Launch {
            kernel: kernel.to_owned(),
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            arguments: Vec::new(),
        })
    }

    fn var(at: u32) -> IndexExpr {
        IndexExpr::var(LoopVarId(at))
    }

    /// `for i in 0..3 { for j in 0..i { a } if 0 >= 0 && i - 1 >= 0 { b } else { c } }`
    fn nested() -> Vec<Command> {
        let inner = Command::Repeat { var: LoopVarId(1), extent: var(0), body: vec![launch("a")] };
        let choice = Command::Choose {
            conditions: vec![IndexExpr::constant(0), var(0).offset(-1)],
            then: vec![launch("b")],
            otherwise: vec![launch("c")],
        };
        vec![Command::Repeat { var: LoopVarId(0), extent: IndexExpr::constant(3), body: vec![inner, choice] }]
    }

    #[test]
    fn loops_and_choices_run_in_order() {
        let mut launched = Vec::new();
        let mut record = |launch: &Launch, variables: &Variables| {
            let values = [0, 1].map(|at| variables.get(LoopVarId(at)).unwrap_or(-1));
            launched.push(format!("{}{}{}", launch.kernel, values[0], values[1]));
            Ok(())
        };
        run(&nested(), &mut record).unwrap();
        assert_eq!(launched, ["c0-1", "a10", "b1-1", "a20", "a21", "b2-1"]);
        assert_eq!(launches(&nested()).iter().map(|launch| &*launch.kernel).collect::<String>(), "abc");
    }

    #[test]
    fn failures_and_unknown_extents_end_the_run() {
        let mut left = 2;
        let mut fail = |_: &Launch, _: &Variables| {
            left -= 1;
            if left > 0 { Ok(()) } else { Err(GpuError::NoKernel("a".to_owned())) }
        };
        assert_eq!(run(&nested(), &mut fail), Err(GpuError::NoKernel("a".to_owned())));
        assert_eq!(left, 0);
        let open = Command::Repeat { var: LoopVarId(0), extent: var(7), body: vec![launch("a")] };
        let error = run(&[open], &mut |_, _| Ok(())).unwrap_err();
        assert!(matches!(error, GpuError::MissingOnHost(_)), "{error}");
    }
}
