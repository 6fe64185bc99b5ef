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

use crate::{FAILURE_CODE, USAGE_CODE, bmad, run_cargo_step, run_step, test_cargo_command};

/// The variable that tells the tests where the clients are; a user can set it to use other ones.
const CLIENTS_VARIABLE: &str = "TRIBUNAL_CLIENTS";
const INSTALL_ONLY: &str = "--install-only";
/// The number of tests at once: a client needs a second of one core to start, and the program under test needs some, too.
const TEST_THREADS: &str = "--test-threads=2";

struct ClientPackage {
    /// The name of its directory and of its command.
    command_name: &'static str,
    package: &'static str,
    version: &'static str,
}

const CLIENT_PACKAGES: &[ClientPackage] = &[
    ClientPackage { command_name: "claude", package: "@anthropic-ai/claude-code", version: "2.1.325" },
    ClientPackage { command_name: "codex", package: "@openai/codex", version: "0.166.0" },
];

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let (flags, tests): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| argument.as_encoded_bytes().starts_with(b"-"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != INSTALL_ONLY) {
        eprintln!("xtask clients: there is no `{}`, only {INSTALL_ONLY} and names of tests", unknown.display());
        return Ok(USAGE_CODE);
    }
    let clients_dir = find_clients_dir();
    // The first failure ends the loop: the tests need all clients.
    for client in CLIENT_PACKAGES {
        let exit_code = client.install(&clients_dir)?;
        if exit_code != 0 {
            return Ok(exit_code);
        }
    }
    if !flags.is_empty() {
        return Ok(0);
    }
    // The tests of stories run in trees of BMAD.
    match bmad::install_trees()? {
        0 => run_client_tests(&clients_dir, &tests),
        exit_code => Ok(exit_code),
    }
}

fn find_clients_dir() -> PathBuf {
    let configured_dir = std::env::var_os(CLIENTS_VARIABLE).map(PathBuf::from);
    // Like cargo itself, this respects a target directory that the user has set.
    let target_dir = || std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    xtask::workspace_root().join(configured_dir.unwrap_or_else(|| target_dir().join("clients")))
}

/// Runs the tests. They use programs of the test kit, which are built for its own tests. Both steps name the whole workspace:
/// for a single package cargo would build the dependencies with other features, once more after `cargo xtask test`.
fn run_client_tests(clients_dir: &Path, tests: &[&OsString]) -> Result<u8> {
    let build_args = ["test", "--workspace", "--test", "clients", "--test", "testkit", "--no-run", "--locked"];
    let exit_code = run_cargo_step(&build_args.map(OsString::from))?;
    if exit_code != 0 {
        return Ok(exit_code);
    }
    let test_args = ["test", "--workspace", "--test", "clients", "--locked", "--", "--ignored", TEST_THREADS];
    // The files of these tests are not in memory: commands in the sandbox of a client may have a `/dev` of their own.
    run_step("the tests with real clients", || {
        let mut test_command = test_cargo_command(None);
        test_command.args(test_args).args(tests).env(CLIENTS_VARIABLE, clients_dir);
        let status = test_command.env(bmad::TREES_VARIABLE, bmad::find_trees_dir()).status();
        match status.context("cannot start cargo")?.code() {
            Some(exit_code) => Ok(u8::try_from(exit_code).unwrap_or(FAILURE_CODE)),
            None => bail!("the tests were ended"),
        }
    })
}

impl ClientPackage {
    fn install(&self, clients_dir: &Path) -> Result<u8> {
        let client_dir = clients_dir.join(self.command_name);
        // The check costs nothing, while npm would ask the network each time.
        if self.installed_version(&client_dir).as_deref() == Some(self.version) {
            eprintln!("==> {} {} is there", self.command_name, self.version);
            return Ok(0);
        }
        fs::create_dir_all(&client_dir).with_context(|| format!("cannot create {}", client_dir.display()))?;
        let package_spec = format!("{}@{}", self.package, self.version);
        run_step(&format!("npm install {package_spec}"), || {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--save-exact", "--prefix"])
                .arg(&client_dir)
                .arg(&package_spec);
            match npm.status() {
                Ok(status) if !status.success() => Ok(FAILURE_CODE),
                Ok(_) => self.check_installed(&client_dir),
                Err(cause) if cause.kind() == ErrorKind::NotFound => {
                    bail!("npm is not installed, and the clients come by it: install Node.js 20 or newer")
                }
                Err(cause) => Err(cause).context("cannot start npm"),
            }
        })
    }

    /// Checks the result: npm may install another version, or a package without the program for this machine.
    fn check_installed(&self, client_dir: &Path) -> Result<u8> {
        let version = self.installed_version(client_dir).unwrap_or_else(|| "nothing that can be started".to_string());
        if version != self.version {
            bail!("npm installed {version}, not {} {}", self.command_name, self.version);
        }
        Ok(0)
    }

    /// The version that is installed in this directory, if its command exists.
    fn installed_version(&self, client_dir: &Path) -> Option<String> {
        let modules_dir = client_dir.join("node_modules");
        // A package without a command is an incomplete installation.
        modules_dir.join(".bin").join(self.command_name).exists().then_some(())?;
        let manifest = fs::read_to_string(modules_dir.join(self.package).join("package.json")).ok()?;
        let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
        manifest.get("version")?.as_str().map(str::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_client_that_can_be_started_counts_as_installed() {
        let directory = tempfile::tempdir().unwrap();
        let client = &CLIENT_PACKAGES[0];
        let modules_dir = directory.path().join("node_modules");
        assert_eq!(client.installed_version(directory.path()), None);

        fs::create_dir_all(modules_dir.join(client.package)).unwrap();
        fs::write(modules_dir.join(client.package).join("package.json"), r#"{"version": "1.2.3"}"#).unwrap();
        assert_eq!(client.installed_version(directory.path()), None, "no command");

        fs::create_dir(modules_dir.join(".bin")).unwrap();
        fs::write(modules_dir.join(".bin").join(client.command_name), "").unwrap();
        assert_eq!(client.installed_version(directory.path()).as_deref(), Some("1.2.3"));
        let problem = client.check_installed(directory.path()).unwrap_err().to_string();
        assert_eq!(problem, "npm installed 1.2.3, not claude 2.1.325");
    }
}
