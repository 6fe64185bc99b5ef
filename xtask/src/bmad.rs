//! `cargo xtask bmad [--install-only] [TEST…]`: runs the tests that read trees as BMAD's own installer creates them.
//!
//! There is one version for each era, from npm, below `target/bmad` and nowhere else; an installed tree is left alone. Only the
//! packages come from the network: the installers run offline, with a home directory of their own. The alpha asks at a terminal
//! and gets its answers from `bmad/answers.cjs`. The tests are in `crates/bmad/tests`, and `cargo xtask test` skips them.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::{FAILED, MISUSED, cargo, step};

/// The variable that tells the tests where the trees are.
const FOLDER: &str = "TRIBUNAL_BMAD_TREES";
const INSTALL_ONLY: &str = "--install-only";
const PACKAGE: &str = "bmad-method";
const ANSWERS: &str = include_str!("bmad/answers.cjs");

/// A tree to install.
struct Tree {
    version: &'static str,
    /// The suffix of the tree's name, if one version has several trees.
    word: &'static str,
    modules: &'static str,
    clients: &'static str,
}

const fn tree(version: &'static str) -> Tree {
    Tree { version, word: "", modules: "bmm", clients: "claude-code" }
}

const TREES: &[Tree] = &[
    Tree { modules: "bmm,bmb,cis", ..tree("6.0.0-alpha.22") },
    tree("6.0.4"),
    Tree { word: "+others", clients: "codex,opencode,gemini", ..tree("6.0.4") },
    tree("6.1.0"),
    tree("6.3.0"),
    tree("6.10.0"),
    tree("6.12.0"),
    Tree { word: "+others", clients: "codex,opencode,gemini", ..tree("6.12.0") },
];

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let (flags, tests): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| argument.as_encoded_bytes().starts_with(b"-"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != INSTALL_ONLY) {
        eprintln!("xtask bmad: there is no `{}`, only {INSTALL_ONLY} and names of tests", unknown.display());
        return Ok(MISUSED);
    }
    let folder = folder();
    // The first failure ends the loop: the tests compare all trees.
    for tree in TREES {
        let code = tree.install(&folder)?;
        if code != 0 {
            return Ok(code);
        }
    }
    if flags.is_empty() { test(&folder, &tests) } else { Ok(0) }
}

fn folder() -> PathBuf {
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    xtask::root().join(built).join("bmad")
}

fn test(folder: &Path, tests: &[&OsString]) -> Result<u8> {
    step("the tests with real trees", || {
        let mut cargo = cargo();
        // With the whole workspace named, cargo builds nothing that `cargo xtask test` has not built.
        cargo.args(["test", "--workspace", "--test", "bmad", "--locked"]);
        cargo.args(["--", "--ignored"]).args(tests).env(FOLDER, folder.join("trees"));
        match cargo.status().context("cannot start cargo")?.code() {
            Some(code) => Ok(u8::try_from(code).unwrap_or(FAILED)),
            None => bail!("the tests were ended"),
        }
    })
}

impl Tree {
    fn name(&self) -> String {
        format!("{}{}", self.version, self.word)
    }

    /// Installs the package and then the tree. The tree is created elsewhere and moved into place, so that an existing tree is
    /// complete.
    fn install(&self, folder: &Path) -> Result<u8> {
        let place = folder.join("trees").join(self.name());
        if place.is_dir() {
            eprintln!("==> BMAD {} is there", self.name());
            return Ok(0);
        }
        let code = self.fetch(folder)?;
        if code != 0 {
            return Ok(code);
        }
        step(&format!("lay the tree of BMAD {}", self.name()), || {
            // BMAD takes the name of the last directory for the name of the project.
            let laid = folder.join("laying").join(self.name());
            // An interrupted installation may have left a part of the tree.
            let _ = fs::remove_dir_all(&laid);
            fs::create_dir_all(&laid).with_context(|| format!("cannot create {}", laid.display()))?;
            fs::create_dir_all(folder.join("trees"))?;
            let status = self.installer(folder, &laid)?.status().context("cannot start node")?;
            if !status.success() {
                eprintln!("its installer ended with {status}");
                return Ok(FAILED);
            }
            self.check(&laid)?;
            fs::rename(&laid, &place)
                .with_context(|| format!("cannot move the tree to {}", place.display()))?;
            Ok(0)
        })
    }

    fn package(&self, folder: &Path) -> PathBuf {
        folder.join("packages").join(self.version)
    }

    fn fetch(&self, folder: &Path) -> Result<u8> {
        let package = self.package(folder);
        // Several trees may use the same package.
        if entry(&package).is_some() {
            return Ok(0);
        }
        fs::create_dir_all(&package).with_context(|| format!("cannot create {}", package.display()))?;
        let wanted = format!("{PACKAGE}@{}", self.version);
        step(&format!("npm install {wanted}"), || {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--save-exact", "--prefix"])
                .arg(&package)
                .arg(&wanted);
            match npm.status() {
                Ok(status) if !status.success() => Ok(FAILED),
                Ok(_) => Ok(0),
                Err(cause) if cause.kind() == ErrorKind::NotFound => {
                    bail!("npm is not installed, and BMAD comes by it: install Node.js 20 or newer")
                }
                Err(cause) => Err(cause).context("cannot start npm"),
            }
        })
    }

    fn installer(&self, folder: &Path, laid: &Path) -> Result<Command> {
        let package = self.package(folder);
        let entry = entry(&package).with_context(|| format!("{} has no installer", package.display()))?;
        // Otherwise the prompts for Codex would be written to the home directory of the user.
        let home = folder.join("home");
        fs::create_dir_all(&home)?;
        let mut node = Command::new("node");
        node.env("HOME", &home).stdin(Stdio::null()).stdout(Stdio::null()).current_dir(laid);
        // The answers are loaded into the installer's own process, because it insists on a terminal.
        if self.asks() {
            let answers = folder.join("answers.cjs");
            fs::write(&answers, ANSWERS)?;
            node.arg("--require").arg(&answers).arg(entry).arg("install");
            node.env("TRIBUNAL_BMAD_FOLDER", laid);
            node.env("TRIBUNAL_BMAD_MODULES", self.modules).env("TRIBUNAL_BMAD_CLIENTS", self.clients);
        } else {
            node.arg(entry).args(["install", "--yes", "--directory"]).arg(laid);
            node.args(["--modules", self.modules, "--tools", self.clients]);
        }
        Ok(node)
    }

    /// Whether the installer asks its questions at a terminal; alphas have no flags for them.
    fn asks(&self) -> bool {
        self.version.contains("alpha")
    }

    /// Checks the tree: an installer may succeed without having created anything.
    fn check(&self, laid: &Path) -> Result<()> {
        let manifest = laid.join("_bmad/_config/manifest.yaml");
        let text =
            fs::read_to_string(&manifest).with_context(|| format!("{} is not there", manifest.display()))?;
        // The manifest is simple enough to be read without a YAML parser.
        let version = text.lines().find_map(|line| line.trim().strip_prefix("version: "));
        if version != Some(self.version) {
            bail!("the tree says version {}, not {}", version.unwrap_or("nothing"), self.version);
        }
        Ok(())
    }
}

/// Finds the installer, which has moved within the package between versions.
fn entry(package: &Path) -> Option<PathBuf> {
    let module = package.join("node_modules").join(PACKAGE);
    ["tools/installer/bmad-cli.js", "tools/cli/bmad-cli.js"]
        .map(|path| module.join(path))
        .into_iter()
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_has_a_name_of_its_own() {
        let mut names: Vec<String> = TREES.iter().map(Tree::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), TREES.len());
    }

    #[test]
    fn a_tree_counts_only_in_the_version_that_was_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let tree = tree("6.1.0");
        assert!(tree.check(folder.path()).is_err(), "nothing was laid");
        let manifest = folder.path().join("_bmad/_config/manifest.yaml");
        fs::create_dir_all(manifest.parent().unwrap()).unwrap();
        fs::write(&manifest, "installation:\n  version: 6.1.1\n").unwrap();
        assert_eq!(
            tree.check(folder.path()).unwrap_err().to_string(),
            "the tree says version 6.1.1, not 6.1.0"
        );
        fs::write(&manifest, "installation:\n  version: 6.1.0\n").unwrap();
        assert!(tree.check(folder.path()).is_ok());
    }

    #[test]
    fn the_installer_is_found_where_either_era_has_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(entry(folder.path()), None);
        let old = folder.path().join("node_modules/bmad-method/tools/cli/bmad-cli.js");
        fs::create_dir_all(old.parent().unwrap()).unwrap();
        fs::write(&old, "").unwrap();
        assert_eq!(entry(folder.path()), Some(old));
    }
}
