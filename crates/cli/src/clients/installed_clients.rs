//! Finds the clients on this machine and whether the user is signed in to them, as far as that shows without starting them.
//!
//! The environment is passed in. Only `tribunal doctor` and [`crate::clients::client_probe`] ask a client itself.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use tribunal_agents::clients::{AgentClient, ClientFiles};
use tribunal_supervise::search_dirs;

use crate::clients::programs::is_executable;

/// A client as it is on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstalledClient {
    pub client: AgentClient,
    /// The program's path; `None` if it is not on the PATH.
    pub program_path: Option<PathBuf>,
    /// What shows that the user is signed in; `None` if nothing shows it.
    pub sign_in: Option<String>,
}

impl InstalledClient {
    pub fn is_ready(&self) -> bool {
        self.program_path.is_some() && self.sign_in.is_some()
    }
}

/// Finds every client that has a driver, in the order in which they are chosen if the user names none.
pub(crate) fn find_clients(env_variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<InstalledClient> {
    let describe_client = |client: AgentClient| InstalledClient {
        client,
        program_path: find_on_path(client.program, env_variable),
        sign_in: sign_in_evidence(client, env_variable),
    };
    AgentClient::all().map(describe_client).collect()
}

/// Finds the program that typing this name would start.
pub(crate) fn find_on_path(program_name: &str, env_variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let is_program = |program_path: &PathBuf| is_executable(program_path);
    // A name with a slash is a path, as in a shell.
    if program_name.contains('/') {
        return Some(PathBuf::from(program_name)).filter(is_program);
    }
    search_dirs(&env_variable("PATH")?).map(|directory| directory.join(program_name)).find(is_program)
}

/// The names of a client's key variables that are set.
pub(crate) fn keys_in_env(client: AgentClient, env_variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<&'static str> {
    // An empty variable is a common way to unset one.
    let is_set = |key_name: &&str| env_variable(key_name).is_some_and(|key_value| !key_value.is_empty());
    client.facts.key_variables.iter().map(|key| key.name).filter(is_set).collect()
}

/// What shows that the user is signed in: a key, a file of credentials, or a provider in the client's own settings.
fn sign_in_evidence(client: AgentClient, env_variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    if let Some(env_key) = keys_in_env(client, env_variable).first() {
        return Some((*env_key).to_string());
    }
    let credentials_file = client.facts.client_files.credentials_file;
    // Clients keep credentials in a file of their own home; a keychain is not looked at here.
    if is_filled_file(&client_home(client, env_variable)?.join(credentials_file)) {
        return Some(format!("credentials in {credentials_file}"));
    }
    describe_custom_provider(client, env_variable)
}

/// The directory in which a client keeps its own files.
fn client_home(client: AgentClient, env_variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let ClientFiles { dir_variable: home_variable, default_dir: below_home, .. } = client.facts.client_files;
    // A relative path is ignored, since it is not known what it is relative to.
    let absolute_path = |variable_name: &str| {
        env_variable(variable_name).map(PathBuf::from).filter(|home_path| home_path.is_absolute())
    };
    absolute_path(home_variable).or_else(|| absolute_path("HOME").map(|user_home| user_home.join(below_home)))
}

/// The directory of every client with its own files, by the client's id.
pub(crate) fn all_client_dirs(env_variable: &dyn Fn(&str) -> Option<OsString>) -> BTreeMap<&'static str, PathBuf> {
    AgentClient::all().filter_map(|client| Some((client.id, client_home(client, env_variable)?))).collect()
}

/// The directories in which sessions of any client keep plans and memory.
pub(crate) fn scratch_directories(env_variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let client_directories = |client: AgentClient| {
        let home_directory = client_home(client, env_variable);
        home_directory.into_iter().flat_map(move |home_directory| {
            client
                .facts
                .client_files
                .session_writable_dirs
                .iter()
                .map(move |directory_name| home_directory.join(directory_name))
        })
    };
    AgentClient::all().flat_map(client_directories).collect()
}

/// The text of the user's own settings of a client; `None` if there is no such file.
fn read_client_settings(client: AgentClient, env_variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    fs::read_to_string(client_home(client, env_variable)?.join(client.facts.client_files.settings_file)).ok()
}

/// The provider that a client's own settings name. The client is signed in to it by other means and does not tell.
pub(crate) fn describe_custom_provider(
    client: AgentClient,
    env_variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<String> {
    client.facts.driver.describe_custom_provider(&read_client_settings(client, env_variable)?)
}

/// The user's own settings of every client that has some, by the client's id.
pub(crate) fn all_client_settings(env_variable: &dyn Fn(&str) -> Option<OsString>) -> BTreeMap<&'static str, String> {
    AgentClient::all().filter_map(|client| Some((client.id, read_client_settings(client, env_variable)?))).collect()
}

/// Joins names for a sentence: `a, b or c`.
pub(crate) fn join_names(names: &[&str], conjunction: &str) -> String {
    match names {
        [] => String::new(),
        [single_name] => (*single_name).to_string(),
        [first_names @ .., last_name] => format!("{} {conjunction} {last_name}", first_names.join(", ")),
    }
}

/// Returns whether a file has content. A client may leave an empty file or `{}` behind after signing out.
fn is_filled_file(file_path: &Path) -> bool {
    file_path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 2)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Describes each client that is found with these variables in one line.
    fn describe_clients(env_variables: &[(&str, &Path)]) -> Vec<String> {
        let lookup = |variable_name: &str| {
            env_variables
                .iter()
                .find(|(known_name, _)| *known_name == variable_name)
                .map(|(_, value)| value.as_os_str().to_owned())
        };
        let client_line = |found_client: InstalledClient| {
            let program_name = found_client
                .program_path
                .and_then(|program_path| Some(program_path.file_name()?.to_string_lossy().into_owned()));
            let signed_in = found_client.sign_in.as_deref().unwrap_or("-");
            format!("{}: {}, {signed_in}", found_client.client.id, program_name.as_deref().unwrap_or("-"))
        };
        find_clients(&lookup).into_iter().map(client_line).collect()
    }

    fn write_program(directory: &Path, program_name: &str, file_mode: u32) {
        fs::write(directory.join(program_name), "#!/bin/sh\n").unwrap();
        fs::set_permissions(directory.join(program_name), fs::Permissions::from_mode(file_mode)).unwrap();
    }

    #[test]
    fn a_client_is_installed_if_its_program_can_run_and_ready_if_it_is_signed_in() {
        let directory = tempfile::tempdir().unwrap();
        let (bin_directory, home_directory) = (directory.path().join("bin"), directory.path().join("home"));
        fs::create_dir_all(home_directory.join(".codex")).unwrap();
        fs::create_dir_all(bin_directory.join("codex")).unwrap();
        write_program(&bin_directory, "claude", 0o644);
        assert_eq!(describe_clients(&[]), ["claude-code: -, -", "codex: -, -"]);
        let machine_variables: [(&str, &Path); 2] = [("PATH", &bin_directory), ("HOME", &home_directory)];
        assert_eq!(
            describe_clients(&machine_variables),
            ["claude-code: -, -", "codex: -, -"],
            "not executable, and a folder"
        );

        fs::remove_dir(bin_directory.join("codex")).unwrap();
        write_program(&bin_directory, "claude", 0o755);
        write_program(&bin_directory, "codex", 0o755);
        fs::write(home_directory.join(".codex/auth.json"), "{}").unwrap();
        assert_eq!(
            describe_clients(&machine_variables),
            ["claude-code: claude, -", "codex: codex, -"],
            "the file says nothing"
        );

        fs::write(home_directory.join(".codex/auth.json"), r#"{"tokens": {}}"#).unwrap();
        assert_eq!(describe_clients(&machine_variables)[1], "codex: codex, credentials in auth.json");
        let with_key = [machine_variables[0], machine_variables[1], ("ANTHROPIC_API_KEY", Path::new("sk-test"))];
        assert_eq!(describe_clients(&with_key)[0], "claude-code: claude, ANTHROPIC_API_KEY");
        let empty_key = [machine_variables[0], machine_variables[1], ("ANTHROPIC_API_KEY", Path::new(""))];
        assert_eq!(describe_clients(&empty_key)[0], "claude-code: claude, -");

        fs::remove_file(home_directory.join(".codex/auth.json")).unwrap();
        for (config_text, expected) in [
            ("model_provider = \"mine\"\n[model_providers.mine]\n", "`model_provider` in its config.toml"),
            ("model_provider = \"openai\"\n", "-"),
            ("[profiles.x]\nmodel_provider = \"mine\"\n", "-"),
        ] {
            fs::write(home_directory.join(".codex/config.toml"), config_text).unwrap();
            assert_eq!(describe_clients(&machine_variables)[1], format!("codex: codex, {expected}"), "{config_text}");
        }

        let elsewhere = directory.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join(".credentials.json"), r#"{"claudeAiOauth": {}}"#).unwrap();
        let moved_homes = [
            machine_variables[0],
            machine_variables[1],
            ("CLAUDE_CONFIG_DIR", elsewhere.as_path()),
            ("CODEX_HOME", &elsewhere),
        ];
        let expected = ["claude-code: claude, credentials in .credentials.json", "codex: codex, -"];
        assert_eq!(describe_clients(&moved_homes), expected);
    }
}
