//! What a command gets besides the project: the user's own file, variables, flags, and the installed clients.

use super::{
    layers::{EffectiveSettings, SettingFlag, SettingSources, VARIABLE_PREFIX},
    pinned::PinnedRun,
    typed::TypedSettings,
};
use crate::{
    clients::{
        client_probe::ask_sign_in,
        installed_clients::{self, InstalledClient},
    },
    context::{self, CommandContext},
    messages::user_errors::UserError,
};

impl SettingSources {
    /// Collects what was set outside any project, in files and variables.
    pub fn from_environment() -> SettingSources {
        SettingSources {
            user_file: context::user_settings_file(),
            variables: context::variables_with_prefix(VARIABLE_PREFIX),
            flags: Vec::new(),
            home_dir: context::home_directory(),
        }
    }
}

/// Everything that a run depends on besides the project's own files.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunInputs {
    pub sources: SettingSources,
    /// Whether scripts take their time, because the user is watching.
    pub is_paced: bool,
    /// The clients on this machine, in the order in which they are chosen if the user names none.
    pub clients: Vec<InstalledClient>,
    /// Asks clients who is signed in if nothing else shows it. Tests leave it out.
    pub ask_sign_ins: Option<fn(&mut [InstalledClient])>,
    /// The run that goes on, if there is one: what the user has not set stays as it is in this run.
    pub pinned_run: Option<Box<PinnedRun>>,
}

impl RunInputs {
    /// Collects what was set outside any project, and the installed clients. Commands add their flags.
    pub fn from_environment(command_context: &CommandContext) -> RunInputs {
        RunInputs {
            sources: SettingSources::from_environment(),
            // A script without a spectator runs at full speed.
            is_paced: command_context.is_interactive && !command_context.wants_json,
            clients: installed_clients::find_clients(&|variable_name| command_context.env_variable(variable_name)),
            ask_sign_ins: Some(ask_sign_in),
            pinned_run: None,
        }
    }

    /// Every value in the field that its setting fills.
    pub(super) fn fill_fields(&self, effective: &EffectiveSettings) -> TypedSettings {
        match &self.pinned_run {
            Some(pinned_run) => pinned_run.apply_changes(effective),
            None => effective.to_typed(),
        }
    }

    /// Adds a flag with a name of its own, for instance `--tier 3`.
    #[must_use]
    pub fn with_flag(mut self, flag_name: &str, setting_path: &str, flag_value: Option<String>) -> RunInputs {
        // A flag that was not typed sets nothing.
        if let Some(flag_value) = flag_value {
            self.sources.flags.push(SettingFlag {
                flag_name: flag_name.to_string(),
                setting_path: setting_path.to_string(),
                flag_value,
            });
        }
        self
    }

    /// Adds `--set KEY=VALUE` flags.
    pub fn with_set_flags(mut self, set_arguments: &[String]) -> Result<RunInputs, UserError> {
        for set_argument in set_arguments {
            // Only the first `=` separates: values may contain more of them.
            let (setting_path, flag_value) = set_argument.split_once('=').ok_or_else(|| {
                UserError::usage(format!("missing value in `--set {set_argument}`"))
                    .with_step("write KEY=VALUE, for example `--set limits.max_cost=2.50`")
            })?;
            let setting_flag = SettingFlag {
                flag_name: format!("--set {setting_path}"),
                setting_path: setting_path.trim().into(),
                flag_value: flag_value.trim().into(),
            };
            self.sources.flags.push(setting_flag);
        }
        Ok(self)
    }
}
