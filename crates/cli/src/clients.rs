//! Which clients are on this machine, and whether somebody is signed in, as far as that shows without starting them.
//!
//! The environment is handed in. What a client says of itself when it is asked is looked at by `tribunal doctor` alone.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tribunal_agents::clients::{AgentClient, ClientFiles};

/// One client as it is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub client: AgentClient,
    /// None: its program is not on the path.
    pub path: Option<PathBuf>,
    /// By what, in words; none: nothing shows it.
    pub signed_in: Option<String>,
}

impl Present {
    pub fn is_ready(&self) -> bool {
        self.path.is_some() && self.signed_in.is_some()
    }
}

/// Every client that has a driver, in the order in which they are taken where nobody is named.
pub(crate) fn look(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Present> {
    let present = |client: AgentClient| Present {
        client,
        path: on_path(client.program, variable),
        signed_in: signed_in(client, variable),
    };
    AgentClient::all().map(present).collect()
}

/// Where typing this would find a program.
pub(crate) fn on_path(program: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(is_program);
    }
    env::split_paths(&variable("PATH")?).map(|folder| folder.join(program)).find(is_program)
}

/// The names of those of a client's variables that are set.
pub(crate) fn keys_set(
    client: AgentClient,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<&'static str> {
    let is_set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
    client.agent.keys.iter().map(|key| key.name).filter(is_set).collect()
}

fn signed_in(client: AgentClient, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    if let Some(key) = keys_set(client, variable).first() {
        return Some((*key).to_string());
    }
    let file = client.agent.files.credentials;
    if is_filled(&home(client, variable)?.join(file)) {
        return Some(format!("{file} of its own"));
    }
    own_provider(client, variable)
}

/// Where a client keeps what is its own.
fn home(client: AgentClient, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let ClientFiles { variable: named, below_home, .. } = client.agent.files;
    let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder(named).or_else(|| folder("HOME").map(|home| home.join(below_home)))
}

/// Where sessions of any client keep plans and memory.
pub(crate) fn scratch_folders(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let below = |client: AgentClient| {
        let home = home(client, variable);
        home.into_iter()
            .flat_map(move |home| client.agent.files.scratch.iter().map(move |name| home.join(name)))
    };
    AgentClient::all().flat_map(below).collect()
}

/// The text of the person's own settings of a client; none: there is no such file.
fn settings(client: AgentClient, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    fs::read_to_string(home(client, variable)?.join(client.agent.files.settings)).ok()
}

/// A provider that the client's own settings name: it is signed in to that one by other means, and does not say so.
pub(crate) fn own_provider(
    client: AgentClient,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<String> {
    client.agent.driver.own_provider(&settings(client, variable)?)
}

/// The text of the person's own settings of every client that has some, by the client's id.
pub(crate) fn all_settings(variable: &dyn Fn(&str) -> Option<OsString>) -> BTreeMap<&'static str, String> {
    AgentClient::all().filter_map(|client| Some((client.id, settings(client, variable)?))).collect()
}

/// Several names in a sentence: `a, b or c`.
pub(crate) fn listed(names: &[&str], conjunction: &str) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_string(),
        [before @ .., last] => format!("{} {conjunction} {last}", before.join(", ")),
    }
}

/// A client that signed out may leave an empty file behind.
fn is_filled(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found with these variables, in a line a client.
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
