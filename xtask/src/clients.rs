//! `cargo xtask clients [--install-only] [TEST…]`: runs the tests that drive real agent clients against a scripted model.
//!
//! The clients are the released ones, in one version each. npm installs them below `target/clients` and nowhere else; an
//! installed client is left alone. Only the installation uses the network: no test asks a real model. The tests are in
//! `crates/cli/tests/clients`, and `cargo xtask test` skips them.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{FAILED, MISUSED, cargo_step, step, test_cargo};

/// The variable that tells the tests where the clients are; a user can set it to use other ones.
const FOLDER: &str = "TRIBUNAL_CLIENTS";
const INSTALL_ONLY: &str = "--install-only";
/// The number of tests at once: a client needs a second of one core to start, and the program under test needs some, too.
const AT_ONCE: &str = "--test-threads=2";

struct Client {
    /// The name of its directory and of its command.
    name: &'static str,
    package: &'static str,
    version: &'static str,
}

const CLIENTS: &[Client] = &[
    Client { name: "claude", package: "@anthropic-ai/claude-code", version: "2.1.325" },
    Client { name: "codex", package: "@openai/codex", version: "0.166.0" },
];

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let (flags, tests): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| argument.as_encoded_bytes().starts_with(b"-"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != INSTALL_ONLY) {
        eprintln!(
            "xtask clients: there is no `{}`, only {INSTALL_ONLY} and names of tests",
            unknown.display()
        );
        return Ok(MISUSED);
    }
    let folder = folder();
    // The first failure ends the loop: the tests need all clients.
    for client in CLIENTS {
        let code = client.install(&folder)?;
        if code != 0 {
            return Ok(code);
        }
    }
    if flags.is_empty() { test(&folder, &tests) } else { Ok(0) }
}

fn folder() -> PathBuf {
    let named = std::env::var_os(FOLDER).map(PathBuf::from);
    // Like cargo itself, this respects a target directory that the user has set.
    let built = || std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    xtask::root().join(named.unwrap_or_else(|| built().join("clients")))
}

/// Runs the tests. They use programs of the test kit, which are built for its own tests. Both steps name the whole workspace:
/// for a single package cargo would build the dependencies with other features, once more after `cargo xtask test`.
fn test(folder: &Path, tests: &[&OsString]) -> Result<u8> {
    let programs = ["test", "--workspace", "--test", "clients", "--test", "testkit", "--no-run", "--locked"];
    let code = cargo_step(&programs.map(OsString::from))?;
    if code != 0 {
        return Ok(code);
    }
    let fixed = ["test", "--workspace", "--test", "clients", "--locked", "--", "--ignored", AT_ONCE];
    // The files of these tests are not in memory: commands in the sandbox of a client may have a `/dev` of their own.
    step("the tests with real clients", || {
        let status = test_cargo(None).args(fixed).args(tests).env(FOLDER, folder).status();
        match status.context("cannot start cargo")?.code() {
            Some(code) => Ok(u8::try_from(code).unwrap_or(FAILED)),
            None => bail!("the tests were ended"),
        }
    })
}

impl Client {
    fn install(&self, folder: &Path) -> Result<u8> {
        let folder = folder.join(self.name);
        // The check costs nothing, while npm would ask the network each time.
        if self.installed(&folder).as_deref() == Some(self.version) {
            eprintln!("==> {} {} is there", self.name, self.version);
            return Ok(0);
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let wanted = format!("{}@{}", self.package, self.version);
        step(&format!("npm install {wanted}"), || {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--save-exact", "--prefix"])
                .arg(&folder)
                .arg(&wanted);
            match npm.status() {
                Ok(status) if !status.success() => Ok(FAILED),
                Ok(_) => self.check(&folder),
                Err(cause) if cause.kind() == ErrorKind::NotFound => {
                    bail!("npm is not installed, and the clients come by it: install Node.js 20 or newer")
                }
                Err(cause) => Err(cause).context("cannot start npm"),
            }
        })
    }

    /// Checks the result: npm may install another version, or a package without the program for this machine.
    fn check(&self, folder: &Path) -> Result<u8> {
        let version = self.installed(folder).unwrap_or_else(|| "nothing that can be started".to_string());
        if version != self.version {
            bail!("npm installed {version}, not {} {}", self.name, self.version);
        }
        Ok(0)
    }

    /// The version that is installed in this directory, if its command exists.
    fn installed(&self, folder: &Path) -> Option<String> {
        let modules = folder.join("node_modules");
        // A package without a command is an incomplete installation.
        modules.join(".bin").join(self.name).exists().then_some(())?;
        let manifest = fs::read_to_string(modules.join(self.package).join("package.json")).ok()?;
        let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
        manifest.get("version")?.as_str().map(str::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_client_that_can_be_started_counts_as_installed() {
        let folder = tempfile::tempdir().unwrap();
        let client = &CLIENTS[0];
        let modules = folder.path().join("node_modules");
        assert_eq!(client.installed(folder.path()), None);

        fs::create_dir_all(modules.join(client.package)).unwrap();
        fs::write(modules.join(client.package).join("package.json"), r#"{"version": "1.2.3"}"#).unwrap();
        assert_eq!(client.installed(folder.path()), None, "no command");

        fs::create_dir(modules.join(".bin")).unwrap();
        fs::write(modules.join(".bin").join(client.name), "").unwrap();
        assert_eq!(client.installed(folder.path()).as_deref(), Some("1.2.3"));
        let other = client.check(folder.path()).unwrap_err().to_string();
        assert_eq!(other, "npm installed 1.2.3, not claude 2.1.325");
    }
}
