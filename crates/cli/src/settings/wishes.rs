//! What a command gets besides the project: the user's own file, variables, flags, and the installed clients.

use super::layers::{Flag, Given, PREFIX};
use crate::{
    clients::{self, Present},
    complaint::Complaint,
    context::{self, Context},
    probe::ask_sign_in,
};

impl Given {
    /// Collects what was set outside any project, in files and variables.
    pub fn from_environment() -> Given {
        Given {
            user_file: context::user_settings_file(),
            variables: context::variables_with(PREFIX),
            flags: Vec::new(),
        }
    }
}

/// Everything that a run depends on besides the project's own files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub given: Given,
    /// Whether scripts take their time, because the user is watching.
    pub paced: bool,
    /// The clients on this machine, in the order in which they are chosen if the user names none.
    pub clients: Vec<Present>,
    /// Asks clients who is signed in if nothing else shows it. Tests leave it out.
    pub ask: Option<fn(&mut [Present])>,
}

impl Wishes {
    /// Collects what was set outside any project, and the installed clients. Commands add their flags.
    pub fn from_environment(context: &Context) -> Wishes {
        Wishes {
            given: Given::from_environment(),
            // A script without a spectator runs at full speed.
            paced: context.interactive && !context.json,
            clients: clients::look(&|name| context.variable(name)),
            ask: Some(ask_sign_in),
        }
    }

    /// Adds a flag with a name of its own, for instance `--tier 3`.
    #[must_use]
    pub fn flag(mut self, name: &str, path: &str, text: Option<String>) -> Wishes {
        // A flag that was not typed sets nothing.
        if let Some(text) = text {
            self.given.flags.push(Flag { name: name.to_string(), path: path.to_string(), text });
        }
        self
    }

    /// Adds `--set KEY=VALUE` flags.
    pub fn set(mut self, pairs: &[String]) -> Result<Wishes, Complaint> {
        for pair in pairs {
            // Only the first `=` separates: values may contain more of them.
            let (path, text) = pair.split_once('=').ok_or_else(|| {
                Complaint::usage(format!("--set {pair}: it has no value"))
                    .todo("write KEY=VALUE, for instance: --set limits.max_cost=2.50")
            })?;
            let flag =
                Flag { name: format!("--set {path}"), path: path.trim().into(), text: text.trim().into() };
            self.given.flags.push(flag);
        }
        Ok(self)
    }
}
