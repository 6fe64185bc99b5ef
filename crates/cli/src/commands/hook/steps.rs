//! Runs the hooks that are declared in the front matter of the step a session is at. They are commands of the
//! project: only trusted ones run, and the file is read anew each time, since the session may have changed it.

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
/// At most this much of a hook's output goes into the journal.
const SHOWN: usize = 4_000;

/// What the hooks of a step led to.
#[derive(Default)]
pub(super) struct Came {
    /// What the hooks at the start of the step printed, for the model.
    pub context: String,
    /// Why a critical hook ended the step; the user has to look at it.
    pub aborted: Option<String>,
}

impl Call {
    /// Runs the step's hooks for this moment. Hooks for its start run first, once per step.
    pub(super) fn step_hooks(&self, taken: &mut Taken, moment: Moment) -> Came {
        let Some(step) = taken.tally.step.clone() else { return Came::default() };
        let hooks = match self.hooks_of(&step) {
            Ok(hooks) => hooks,
            // A step without usable hooks goes on: refusing here would block the session for a typing mistake.
            Err(why) => {
                say(&format!("hooks of {} do not run: {why}", step.file));
                return Came::default();
            }
        };
        // A loop usually begins in the middle of a session, so its step gets the start hooks at the next event of any
        // kind.
        let mut moments = vec![moment];
        if !step.begun && moment != Moment::SessionStart {
            moments.insert(0, Moment::SessionStart);
        }
        moments.retain(|moment| hooks.at(*moment).next().is_some());
        let mut came = Came::default();
        for moment in moments {
            let said = self.run_hooks(taken, &hooks, moment, &mut came);
            // Only the output of start hooks is meant for the model; the rest is in the journal.
            if moment == Moment::SessionStart {
                came.context.push_str(&said);
            }
            // Later hooks may rely on what the critical one should have prepared.
            if came.aborted.is_some() {
                break;
            }
        }
        came
    }

    /// Reads the hooks from the step's file, provided that all of them are trusted.
    fn hooks_of(&self, step: &Step) -> Result<Hooks, String> {
        let path = self.project.root().join(&step.file);
        // A link out of the project would let another project's file decide what runs here.
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
        // The text that is checked for trust is the text that runs: the file is not read a second time.
        let context = Context::new(None, false, Colour::Never).map_err(|complaint| complaint.to_string())?;
        trust::require(&context, self.project.root(), &items).map_err(|complaint| complaint.to_string())?;
        Ok(hooks)
    }

    /// Runs the hooks of one moment and returns what they printed.
    fn run_hooks(&self, taken: &mut Taken, hooks: &Hooks, moment: Moment, came: &mut Came) -> String {
        let step = taken.tally.step.clone().unwrap_or_default();
        let masker = masker();
        // A hook process is short-lived, so a runtime is built only when a step really has hooks.
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(cause) => {
                say(&cause.to_string());
                return String::new();
            }
        };
        let keeper = tribunal_supervise::own_program();
        let runner = StepHooks::new(self.project.root().to_path_buf(), keeper, &masker);
        // Hooks that run once, and their earlier output, are remembered in the session's tally.
        let kept = Kept { ran: step.once.iter().cloned().collect(), said: step.said };
        let Report { ran, notes, kept } =
            runtime.block_on(runner.run(hooks, moment, &self.told(&step), kept));
        notes.iter().for_each(|note| say(note));
        let begun = step.begun || moment == Moment::SessionStart;
        let once = kept.ran.into_iter().collect();
        // The tally is updated before anything is recorded, so that the record has the new step.
        taken.tally.step = Some(Step { begun, once, said: kept.said, ..step });
        let mut said = String::new();
        for ran in &ran {
            said.push_str(&ran.stdout.text);
            self.note_hook(taken, ran);
        }
        // The first critical failure ends the session's work; hooks that are not critical only leave a note.
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
        // Both streams are kept together: what matters is what a reader of the journal can make of it.
        let output = format!("{}{}", ran.stdout.text, ran.stderr.text);
        let output = output.chars().take(SHOWN).collect();
        let command = super::masked(&ran.command);
        self.note(taken, What::Hooked { command, fault, output });
    }

    fn told(&self, step: &Step) -> Told {
        let tool = self.input.tool.as_ref();
        let response = tool.and_then(|tool| tool.response.as_ref());
        let code = response.and_then(|response| {
            // Clients name the exit code of a tool differently.
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
