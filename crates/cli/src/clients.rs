//! Finds the clients on this machine and whether the user is signed in to them, as far as that shows without starting them.
//!
//! The environment is passed in. Only `tribunal doctor` and [`crate::client_probe`] ask a client itself.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tribunal_agents::clients::{AgentClient, ClientFiles};

/// A client as it is on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub client: AgentClient,
    /// The program's path; `None` if it is not on the PATH.
    pub path: Option<PathBuf>,
    /// What shows that the user is signed in; `None` if nothing shows it.
    pub signed_in: Option<String>,
}

impl Present {
    pub fn is_ready(&self) -> bool {
        self.path.is_some() && self.signed_in.is_some()
    }
}

/// Finds every client that has a driver, in the order in which they are chosen if the user names none.
pub(crate) fn look(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Present> {
    let present = |client: AgentClient| Present {
        client,
        path: on_path(client.program, variable),
        signed_in: signed_in(client, variable),
    };
    AgentClient::all().map(present).collect()
}

/// Finds the program that typing this name would start.
pub(crate) fn on_path(program: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    // A name with a slash is a path, as in a shell.
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(is_program);
    }
    env::split_paths(&variable("PATH")?).map(|folder| folder.join(program)).find(is_program)
}

/// The names of a client's key variables that are set.
pub(crate) fn keys_set(
    client: AgentClient,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<&'static str> {
    // An empty variable is a common way to unset one.
    let is_set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
    client.agent.keys.iter().map(|key| key.name).filter(is_set).collect()
}

/// What shows that the user is signed in: a key, a file of credentials, or a provider in the client's own settings.
fn signed_in(client: AgentClient, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    if let Some(key) = keys_set(client, variable).first() {
        return Some((*key).to_string());
    }
    let file = client.agent.files.credentials;
    // Clients keep credentials in a file of their own home; a keychain is not looked at here.
    if is_filled(&home(client, variable)?.join(file)) {
        return Some(format!("{file} of its own"));
    }
    own_provider(client, variable)
}

/// The directory in which a client keeps its own files.
fn home(client: AgentClient, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let ClientFiles { variable: named, below_home, .. } = client.agent.files;
    // Clients ignore relative paths in these variables, and so do we.
    let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder(named).or_else(|| folder("HOME").map(|home| home.join(below_home)))
}

/// The directories in which sessions of any client keep plans and memory.
pub(crate) fn scratch_folders(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let below = |client: AgentClient| {
        let home = home(client, variable);
        home.into_iter()
            .flat_map(move |home| client.agent.files.scratch.iter().map(move |name| home.join(name)))
    };
    AgentClient::all().flat_map(below).collect()
}

/// The text of the user's own settings of a client; `None` if there is no such file.
fn settings(client: AgentClient, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    fs::read_to_string(home(client, variable)?.join(client.agent.files.settings)).ok()
}

/// The provider that a client's own settings name. The client is signed in to it by other means and does not tell.
pub(crate) fn own_provider(
    client: AgentClient,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<String> {
    client.agent.driver.own_provider(&settings(client, variable)?)
}

/// The user's own settings of every client that has some, by the client's id.
pub(crate) fn all_settings(variable: &dyn Fn(&str) -> Option<OsString>) -> BTreeMap<&'static str, String> {
    AgentClient::all().filter_map(|client| Some((client.id, settings(client, variable)?))).collect()
}

/// Joins names for a sentence: `a, b or c`.
pub(crate) fn listed(names: &[&str], conjunction: &str) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_string(),
        [before @ .., last] => format!("{} {conjunction} {last}", before.join(", ")),
    }
}

/// Returns whether a file has content. A client may leave an empty file or `{}` behind after signing out.
fn is_filled(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes each client that is found with these variables in one line.
    fn found(variables: &[(&str, &Path)]) -> Vec<String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_os_str().to_owned())
        };
        let line = |present: Present| {
            let path = present.path.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
            let signed_in = present.signed_in.as_deref().unwrap_or("-");
            format!("{}: {}, {signed_in}", present.client.id, path.as_deref().unwrap_or("-"))
        };
        look(&variable).into_iter().map(line).collect()
    }

    fn program(folder: &Path, name: &str, mode: u32) {
        fs::write(folder.join(name), "#!/bin/sh\n").unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_client_is_there_when_its_program_can_be_run_and_ready_when_something_signs_it_in() {
        let folder = tempfile::tempdir().unwrap();
        let (bin, home) = (folder.path().join("bin"), folder.path().join("home"));
        fs::create_dir_all(home.join(".codex")).unwrap();
        fs::create_dir_all(bin.join("codex")).unwrap();
        program(&bin, "claude", 0o644);
        assert_eq!(found(&[]), ["claude-code: -, -", "codex: -, -"]);
        let here: [(&str, &Path); 2] = [("PATH", &bin), ("HOME", &home)];
        assert_eq!(found(&here), ["claude-code: -, -", "codex: -, -"], "not executable, and a folder");

        fs::remove_dir(bin.join("codex")).unwrap();
        program(&bin, "claude", 0o755);
        program(&bin, "codex", 0o755);
        fs::write(home.join(".codex/auth.json"), "{}").unwrap();
        assert_eq!(found(&here), ["claude-code: claude, -", "codex: codex, -"], "the file says nothing");

        fs::write(home.join(".codex/auth.json"), r#"{"tokens": {}}"#).unwrap();
        assert_eq!(found(&here)[1], "codex: codex, auth.json of its own");
        let with_key = [here[0], here[1], ("ANTHROPIC_API_KEY", Path::new("sk-test"))];
        assert_eq!(found(&with_key)[0], "claude-code: claude, ANTHROPIC_API_KEY");
        let empty_key = [here[0], here[1], ("ANTHROPIC_API_KEY", Path::new(""))];
        assert_eq!(found(&empty_key)[0], "claude-code: claude, -");

        fs::remove_file(home.join(".codex/auth.json")).unwrap();
        for (config, expected) in [
            ("model_provider = \"mine\"\n[model_providers.mine]\n", "model_provider in its config.toml"),
            ("model_provider = \"openai\"\n", "-"),
            ("[profiles.x]\nmodel_provider = \"mine\"\n", "-"),
        ] {
            fs::write(home.join(".codex/config.toml"), config).unwrap();
            assert_eq!(found(&here)[1], format!("codex: codex, {expected}"), "{config}");
        }

        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join(".credentials.json"), r#"{"claudeAiOauth": {}}"#).unwrap();
        let moved =
            [here[0], here[1], ("CLAUDE_CONFIG_DIR", elsewhere.as_path()), ("CODEX_HOME", &elsewhere)];
        let expected = ["claude-code: claude, .credentials.json of its own", "codex: codex, -"];
        assert_eq!(found(&moved), expected);
    }
}
