//! Hooks that stand in the front matter of the step a session is at. They are the project's commands: only what was trusted
//! runs, and what the file says is looked at anew each time, since the session may have changed it.

use std::fs;

use tribunal_bmad::hooks::{Hooks, Moment, read};
use tribunal_core::session::{LetGo, Step, What};
use tribunal_runner::{
    session::{self, Taken},
    step_hooks::{Kept, Ran, Report, StepHooks, Told},
};

use super::{Call, say};
use crate::{
    Colour,
    context::{Context, masker},
    trust,
    trust_item::Item,
};

/// A step's file is not longer than this.
const LONGEST: u64 = 1 << 20;
/// Of what a hook prints, so much goes into the journal.
const SHOWN: usize = 4_000;

/// What came of the hooks of a step.
#[derive(Default)]
pub(super) struct Came {
    /// What those at the beginning said, for the model.
    pub context: String,
    /// A critical one failed: the step is over, for a person to look at.
    pub aborted: Option<String>,
}

impl Call {
    /// Runs those for this moment; those for the beginning come first, once.
    pub(super) fn step_hooks(&self, taken: &mut Taken, moment: Moment) -> Came {
        let Some(step) = taken.tally.step.clone() else { return Came::default() };
        let hooks = match self.hooks_of(&step) {
            Ok(hooks) => hooks,
            Err(why) => {
                say(&format!("hooks of {} do not run: {why}", step.file));
                return Came::default();
            }
        };
        let mut moments = vec![moment];
        if !step.begun && moment != Moment::SessionStart {
            moments.insert(0, Moment::SessionStart);
        }
        moments.retain(|moment| hooks.at(*moment).next().is_some());
        let mut came = Came::default();
        for moment in moments {
            let said = self.run_hooks(taken, &hooks, moment, &mut came);
            if moment == Moment::SessionStart {
                came.context.push_str(&said);
            }
            if came.aborted.is_some() {
                break;
            }
        }
        came
    }

    /// What the file says now, if all of it is trusted.
    fn hooks_of(&self, step: &Step) -> Result<Hooks, String> {
        let path = self.project.root().join(&step.file);
        if let Some(to) = self.project.leads_out(&path) {
            return Err(format!("it leads out of the project, to {}", to.display()));
        }
        let meta = fs::metadata(&path).map_err(|cause| cause.to_string())?;
        if meta.len() > LONGEST {
            return Err("the file is too long".to_string());
        }
        let text = fs::read_to_string(&path).map_err(|cause| cause.to_string())?;
        let hooks = read(&step.file, &text);
        let items = Item::of_hooks(&step.file, &hooks);
        let context = Context::new(None, false, Colour::Never).map_err(|complaint| complaint.to_string())?;
        trust::require(&context, self.project.root(), &items).map_err(|complaint| complaint.to_string())?;
        Ok(hooks)
    }

    /// What they said.
    fn run_hooks(&self, taken: &mut Taken, hooks: &Hooks, moment: Moment, came: &mut Came) -> String {
        let step = taken.tally.step.clone().unwrap_or_default();
        let masker = masker();
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(cause) => {
                say(&cause.to_string());
                return String::new();
            }
        };
        let keeper = tribunal_supervise::own_program();
        let runner = StepHooks::new(self.project.root().to_path_buf(), keeper, &masker);
        let kept = Kept { ran: step.once.iter().cloned().collect(), said: step.said };
        let Report { ran, notes, kept } =
            runtime.block_on(runner.run(hooks, moment, &self.told(&step), kept));
        notes.iter().for_each(|note| say(note));
        let begun = step.begun || moment == Moment::SessionStart;
        let once = kept.ran.into_iter().collect();
        taken.tally.step = Some(Step { begun, once, said: kept.said, ..step });
        let mut said = String::new();
        for ran in &ran {
            said.push_str(&ran.stdout.text);
            self.note_hook(taken, ran);
        }
        if let Some(failed) = ran.iter().find(|ran| ran.critical && ran.end.is_failure()) {
            let why = format!("the critical hook `{}` failed: {}", failed.command, failed.end.words());
            if let Err(cause) = taken.let_go(&self.project, LetGo::Failures, &why, session::now_ms()) {
                say(&cause.to_string());
            }
            came.aborted = Some(why);
        }
        said
    }

    fn note_hook(&self, taken: &Taken, ran: &Ran) {
        let fault = if ran.end.is_failure() { ran.end.words() } else { String::new() };
        if !fault.is_empty() {
            say(&format!("hook `{}`: {fault}", ran.command));
        }
        let output = format!("{}{}", ran.stdout.text, ran.stderr.text);
        let output = output.chars().take(SHOWN).collect();
        let command = super::masked(&ran.command);
        self.note(taken, What::Hooked { command, fault, output });
    }

    fn told(&self, step: &Step) -> Told {
        let tool = self.input.tool.as_ref();
        let response = tool.and_then(|tool| tool.response.as_ref());
        let code = response.and_then(|response| {
            let named = ["exit_code", "exitCode", "returnCode"].iter().find_map(|name| response.get(*name));
            named.and_then(serde_json::Value::as_i64)
        });
        Told {
            tool_name: tool.map(|tool| tool.name.clone()),
            tool_args: tool.map(|tool| tool.input.to_string()),
            exit_code: code.and_then(|code| i32::try_from(code).ok()),
            step: Some(step.file.clone()),
            workflow: Some("loop".to_string()),
        }
    }
}
