//! What a command was given beside the project: the person's own file, variables, flags, and the clients that are here.

use super::layers::{Flag, Given, PREFIX};
use crate::{
    clients::{self, Present},
    complaint::Complaint,
    context::{self, Context},
    probe::ask_sign_in,
};

impl Given {
    /// What was set outside any project, in files and variables.
    pub fn from_environment() -> Given {
        Given {
            user_file: context::user_settings_file(),
            variables: context::variables_with(PREFIX),
            flags: Vec::new(),
        }
    }
}

/// What a person asked for on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub given: Given,
    /// Scripts take their time: somebody is watching.
    pub paced: bool,
    /// Clients as they are on this machine, in the order in which they are taken where nobody is named.
    pub clients: Vec<Present>,
    /// Asks them who is signed in, where nothing shows it.
    pub ask: Option<fn(&mut [Present])>,
}

impl Wishes {
    /// What was set outside any project, and the clients that are here; flags are the command's to add.
    pub fn from_environment(context: &Context) -> Wishes {
        Wishes {
            given: Given::from_environment(),
            paced: context.interactive && !context.json,
            clients: clients::look(&|name| context.variable(name)),
            ask: Some(ask_sign_in),
        }
    }

    /// A flag with a name of its own, for instance `--tier 3`.
    #[must_use]
    pub fn flag(mut self, name: &str, path: &str, text: Option<String>) -> Wishes {
        if let Some(text) = text {
            self.given.flags.push(Flag { name: name.to_string(), path: path.to_string(), text });
        }
        self
    }

    /// `--set KEY=VALUE`.
    pub fn set(mut self, pairs: &[String]) -> Result<Wishes, Complaint> {
        for pair in pairs {
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
