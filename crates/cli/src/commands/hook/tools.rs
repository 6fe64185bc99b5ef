//! Handles the use of a tool, before and after: guards, the audit, and the hooks of the current step.
//!
//! A session that is bound to work is held to all guards that are set; any other session is only kept from Tribunal's
//! own files. What the guards protect is verified again from outside, so they let pass what they do not understand.

use std::{env, path::Path};

use tribunal_agents::{
    clients::guarded_files,
    hook::{
        Answer,
        tools::{Used, tool_use},
    },
};
use tribunal_bmad::hooks::Moment;
use tribunal_core::{session::What, settings::Settings, subject::Subject, view::RunView};
use tribunal_guard::{Bounds, Ground, GuardPolicy, ToolUse, check};
use tribunal_runner::session::{Taken, file};
use tribunal_store::Store;

use super::{Call, masked, steps::Came};
use crate::clients::scratch_folders;

impl Call {
    pub(super) fn pre_tool_use(&self) -> Answer {
        let Some(tool) = &self.input.tool else { return Answer::Allow { say: None } };
        let mut taken = self.taken();
        // A project that never used Tribunal has nothing to protect, and hooks must cost it nothing.
        if taken.is_none() && !self.project.home().exists() {
            return Answer::Allow { say: None };
        }
        let used = tool_use(self.client, tool);
        // A session that is not bound to any work is free, apart from the files of Tribunal itself.
        let policy = match &taken {
            Some(_) => self.settings.guard,
            None => GuardPolicy { paths: Bounds::Off, destructive: false, ..self.settings.guard },
        };
        let place = Place::of(self, taken.as_deref(), policy, used.folder.as_deref());
        match check(policy, &place.ground(taken.is_some()), &guarded(&used)) {
            // Step hooks run only for a use that the guards allow.
            None => match taken.as_mut().map(|taken| self.step_hooks(taken, Moment::PreToolUse)) {
                Some(Came { aborted: Some(why), .. }) => Answer::Deny { reason: aborted(&why) },
                _ => Answer::Allow { say: None },
            },
            Some(denied) => {
                // The journal gets the masked reason; the client gets the real one, which quotes its own command.
                if let Some(taken) = &taken {
                    let reason = masked(&denied.reason);
                    self.note(taken, What::Denied { tool: tool.name.clone(), reason });
                }
                Answer::Deny { reason: denied.reason }
            }
        }
    }

    pub(super) fn post_tool_use(&self) -> Answer {
        if let (Some(mut taken), Some(tool)) = (self.taken(), &self.input.tool) {
            // It is not known whether a sub-agent's work ends the client's count of refusals, so only the session's
            // own does.
            if self.input.agent.is_empty() {
                taken.tally.in_a_row = 0;
            }
            taken.tally.tools += 1;
            self.note(&taken, What::Used { tool: tool.name.clone() });
            let came = self.step_hooks(&mut taken, Moment::PostToolUse);
            return Answer::Allow { say: came.aborted.map(|why| aborted(&why)) };
        }
        Answer::Allow { say: None }
    }
}

/// Extracts the part of a tool call that the guard looks at.
fn guarded(used: &Used) -> ToolUse<'_> {
    ToolUse { paths: &used.paths, command: used.command.as_deref(), writes: used.writes }
}

/// Says that a critical hook has ended a step.
pub(super) fn aborted(why: &str) -> String {
    format!("Tribunal: this step is over, {why}. A person has to look at it: tribunal decisions")
}

/// The place where a tool would be used, with the paths that are protected there.
struct Place {
    root: String,
    cwd: String,
    home: String,
    subject: Vec<String>,
    change: bool,
    own: Vec<String>,
    scratch: Vec<String>,
}

impl Place {
    fn of(call: &Call, taken: Option<&Taken>, policy: GuardPolicy, folder: Option<&str>) -> Place {
        // Links are resolved on both sides, or a link into `.tribunal` would not be recognized.
        let real =
            |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()).display().to_string();
        let root = call.project.root();
        let cwd = Path::new(&call.input.cwd).join(folder.unwrap_or_default());
        let mut own: Vec<String> = [".tribunal/", file::OURS].map(String::from).to_vec();
        if taken.is_some() {
            // A bound session must not change the settings that hold it, nor those by which it is measured.
            own.extend(["tribunal.yaml"].into_iter().chain(guarded_files()).map(String::from));
        }
        let (mut subject, mut change) = (Vec::new(), false);
        if let Some(settings) = taken.and_then(|taken| pinned(call, taken)) {
            own.push(format!("{}/", settings.reviews));
            // Decisions are stored beside the reviews; an answer there would be an answer in the user's name.
            if let Some((folder, _)) = settings.reviews.rsplit_once('/') {
                own.push(format!("{folder}/awaiting-human/"));
            }
            // Otherwise the guard bounds paths by the project, and the subject does not matter.
            if policy.paths == Bounds::Subject {
                change = matches!(settings.subject, Subject::Change(_));
                subject = settings.subject.files().into_iter().map(String::from).collect();
            }
        }
        Place {
            root: real(root),
            cwd: if cwd.is_absolute() { real(&cwd) } else { real(root) },
            home: env::var("HOME").unwrap_or_default(),
            subject,
            change,
            own,
            scratch: scratch(),
        }
    }

    fn ground(&self, session_bound: bool) -> Ground<'_> {
        Ground {
            root: &self.root,
            cwd: &self.cwd,
            home: &self.home,
            subject: &self.subject,
            change: self.change,
            own: &self.own,
            scratch: &self.scratch,
            session_bound,
        }
    }
}

/// Lists where every session may write: the system's temporary directory, and the clients' directories for plans and
/// memory.
fn scratch() -> Vec<String> {
    let kept = scratch_folders(&|name| env::var_os(name));
    let all = [env::temp_dir()].into_iter().chain(kept);
    all.map(|folder| folder.canonicalize().unwrap_or(folder).display().to_string()).collect()
}

/// Loads the settings to which the run is pinned whose findings the session has taken on.
fn pinned(call: &Call, taken: &Taken) -> Option<Settings> {
    let run = taken.state.run.as_ref()?;
    let store = Store::open_read_only(&call.project.home()).ok()?;
    // Only the latest of these entries counts, so the whole journal need not be read.
    let last = store.last_of(run, &["run_started", "settings_changed"]).ok()??;
    RunView::of([&last]).settings
}
