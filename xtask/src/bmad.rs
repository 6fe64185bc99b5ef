//! `cargo xtask bmad [--install-only] [TEST…]`: runs the tests that read trees as BMAD's own installer creates them.
//! `cargo xtask bmad --corpus DIR`: compares what is read in files of real projects with what people read in them, prints the
//! counts, and fails if a bar is missed.
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

use crate::{FAILURE_CODE, USAGE_CODE, cargo_command, run_step};

/// The variable that tells the tests where the trees are.
pub(crate) const TREES_VARIABLE: &str = "TRIBUNAL_BMAD_TREES";
const INSTALL_ONLY: &str = "--install-only";
/// The variable that tells the corpus test where the corpus is.
const CORPUS_VARIABLE: &str = "TRIBUNAL_BMAD_CORPUS";
const CORPUS: &str = "--corpus";
const PACKAGE: &str = "bmad-method";
const ANSWERS_SCRIPT: &str = include_str!("bmad/answers.cjs");

/// A tree to install.
struct BmadTree {
    version: &'static str,
    /// The suffix of the tree's name, if one version has several trees.
    name_suffix: &'static str,
    modules: &'static str,
    clients: &'static str,
}

const fn default_tree(version: &'static str) -> BmadTree {
    BmadTree { version, name_suffix: "", modules: "bmm", clients: "claude-code" }
}

const BMAD_TREES: &[BmadTree] = &[
    BmadTree { modules: "bmm,bmb,cis", ..default_tree("6.0.0-alpha.22") },
    default_tree("6.0.4"),
    BmadTree { name_suffix: "+others", clients: "codex,opencode,gemini", ..default_tree("6.0.4") },
    default_tree("6.1.0"),
    default_tree("6.3.0"),
    default_tree("6.10.0"),
    default_tree("6.12.0"),
    BmadTree { name_suffix: "+others", clients: "codex,opencode,gemini", ..default_tree("6.12.0") },
];

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    match arguments {
        [flag, corpus_dir] if flag == CORPUS => return run_corpus_test(Path::new(corpus_dir)),
        [flag, ..] if flag == CORPUS => {
            eprintln!("xtask bmad: `{CORPUS}` takes the directory of the corpus and nothing else");
            return Ok(USAGE_CODE);
        }
        _ => {}
    }
    let (flags, tests): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| argument.as_encoded_bytes().starts_with(b"-"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != INSTALL_ONLY) {
        eprintln!(
            "xtask bmad: there is no `{}`, only {INSTALL_ONLY}, {CORPUS} DIR and names of tests",
            unknown.display()
        );
        return Ok(USAGE_CODE);
    }
    let bmad_dir = find_bmad_dir();
    let exit_code = install_trees()?;
    if exit_code == 0 && flags.is_empty() { run_tree_tests(&bmad_dir, &tests) } else { Ok(exit_code) }
}

/// Installs all trees that are not there. The first failure ends it: the tests need all of them.
pub(crate) fn install_trees() -> Result<u8> {
    for bmad_tree in BMAD_TREES {
        let exit_code = bmad_tree.install(&find_bmad_dir())?;
        if exit_code != 0 {
            return Ok(exit_code);
        }
    }
    Ok(0)
}

/// The directory of the trees.
pub(crate) fn find_trees_dir() -> PathBuf {
    find_bmad_dir().join("trees")
}

fn run_corpus_test(corpus_dir: &Path) -> Result<u8> {
    let corpus_dir = fs::canonicalize(corpus_dir).with_context(|| format!("cannot open {}", corpus_dir.display()))?;
    run_step("the files of real projects", || {
        let mut test_command = cargo_command();
        test_command.args([
            "test",
            "--workspace",
            "--test",
            "bmad",
            "--locked",
            "--",
            "--ignored",
            "--nocapture",
            "corpus::",
        ]);
        test_command.env(CORPUS_VARIABLE, &corpus_dir);
        match test_command.status().context("cannot start cargo")?.code() {
            Some(code) => Ok(u8::try_from(code).unwrap_or(FAILURE_CODE)),
            None => bail!("the test was ended"),
        }
    })
}

fn find_bmad_dir() -> PathBuf {
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    xtask::workspace_root().join(target_dir).join("bmad")
}

fn run_tree_tests(bmad_dir: &Path, tests: &[&OsString]) -> Result<u8> {
    run_step("the tests with real trees", || {
        let mut test_command = cargo_command();
        // With the whole workspace named, cargo builds nothing that `cargo xtask test` has not built.
        test_command.args(["test", "--workspace", "--test", "bmad", "--locked"]);
        test_command
            .args(["--", "--ignored", "--skip", "corpus::"])
            .args(tests)
            .env(TREES_VARIABLE, bmad_dir.join("trees"));
        match test_command.status().context("cannot start cargo")?.code() {
            Some(code) => Ok(u8::try_from(code).unwrap_or(FAILURE_CODE)),
            None => bail!("the tests were ended"),
        }
    })
}

impl BmadTree {
    fn tree_name(&self) -> String {
        format!("{}{}", self.version, self.name_suffix)
    }

    /// Installs the package and then the tree. The tree is created elsewhere and moved into place, so that an existing tree is
    /// complete.
    fn install(&self, bmad_dir: &Path) -> Result<u8> {
        let final_dir = bmad_dir.join("trees").join(self.tree_name());
        if final_dir.is_dir() {
            eprintln!("==> BMAD {} is there", self.tree_name());
            return Ok(0);
        }
        let exit_code = self.fetch_package(bmad_dir)?;
        if exit_code != 0 {
            return Ok(exit_code);
        }
        run_step(&format!("lay the tree of BMAD {}", self.tree_name()), || {
            // BMAD takes the name of the last directory for the name of the project.
            let staging_dir = bmad_dir.join("laying").join(self.tree_name());
            // An interrupted installation may have left a part of the tree.
            let _ = fs::remove_dir_all(&staging_dir);
            fs::create_dir_all(&staging_dir).with_context(|| format!("cannot create {}", staging_dir.display()))?;
            fs::create_dir_all(bmad_dir.join("trees"))?;
            let status = self.installer_command(bmad_dir, &staging_dir)?.status().context("cannot start node")?;
            if !status.success() {
                eprintln!("its installer ended with {status}");
                return Ok(FAILURE_CODE);
            }
            self.check_installed(&staging_dir)?;
            fs::rename(&staging_dir, &final_dir)
                .with_context(|| format!("cannot move the tree to {}", final_dir.display()))?;
            Ok(0)
        })
    }

    fn package_dir(&self, bmad_dir: &Path) -> PathBuf {
        bmad_dir.join("packages").join(self.version)
    }

    fn fetch_package(&self, bmad_dir: &Path) -> Result<u8> {
        let target_dir = self.package_dir(bmad_dir);
        // Several trees may use the same package.
        if find_installer(&target_dir).is_some() {
            return Ok(0);
        }
        fs::create_dir_all(&target_dir).with_context(|| format!("cannot create {}", target_dir.display()))?;
        let package_spec = format!("{PACKAGE}@{}", self.version);
        run_step(&format!("npm install {package_spec}"), || {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--save-exact", "--prefix"])
                .arg(&target_dir)
                .arg(&package_spec);
            match npm.status() {
                Ok(status) if !status.success() => Ok(FAILURE_CODE),
                Ok(_) => Ok(0),
                Err(cause) if cause.kind() == ErrorKind::NotFound => {
                    bail!("npm is not installed, and BMAD comes by it: install Node.js 20 or newer")
                }
                Err(cause) => Err(cause).context("cannot start npm"),
            }
        })
    }

    fn installer_command(&self, bmad_dir: &Path, staging_dir: &Path) -> Result<Command> {
        let installed_package = self.package_dir(bmad_dir);
        let installer_script = find_installer(&installed_package)
            .with_context(|| format!("{} has no installer", installed_package.display()))?;
        // Otherwise the prompts for Codex would be written to the home directory of the user.
        let home_dir = bmad_dir.join("home");
        fs::create_dir_all(&home_dir)?;
        let mut node = Command::new("node");
        node.env("HOME", &home_dir).stdin(Stdio::null()).stdout(Stdio::null()).current_dir(staging_dir);
        // The answers are loaded into the installer's own process, because it insists on a terminal.
        if self.is_interactive() {
            let answers_path = bmad_dir.join("answers.cjs");
            fs::write(&answers_path, ANSWERS_SCRIPT)?;
            node.arg("--require").arg(&answers_path).arg(installer_script).arg("install");
            node.env("TRIBUNAL_BMAD_FOLDER", staging_dir);
            node.env("TRIBUNAL_BMAD_MODULES", self.modules).env("TRIBUNAL_BMAD_CLIENTS", self.clients);
        } else {
            node.arg(installer_script).args(["install", "--yes", "--directory"]).arg(staging_dir);
            node.args(["--modules", self.modules, "--tools", self.clients]);
        }
        Ok(node)
    }

    /// Whether the installer asks its questions at a terminal; alphas have no flags for them.
    fn is_interactive(&self) -> bool {
        self.version.contains("alpha")
    }

    /// Checks the tree: an installer may succeed without having created anything.
    fn check_installed(&self, staging_dir: &Path) -> Result<()> {
        let manifest_path = staging_dir.join("_bmad/_config/manifest.yaml");
        let manifest_text =
            fs::read_to_string(&manifest_path).with_context(|| format!("{} is not there", manifest_path.display()))?;
        // The manifest is simple enough to be read without a YAML parser.
        let version = manifest_text.lines().find_map(|line| line.trim().strip_prefix("version: "));
        if version != Some(self.version) {
            bail!("the tree says version {}, not {}", version.unwrap_or("nothing"), self.version);
        }
        Ok(())
    }
}

/// Finds the installer, which has moved within the package between versions.
fn find_installer(installed_package: &Path) -> Option<PathBuf> {
    let module_dir = installed_package.join("node_modules").join(PACKAGE);
    ["tools/installer/bmad-cli.js", "tools/cli/bmad-cli.js"]
        .map(|path| module_dir.join(path))
        .into_iter()
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_has_a_name_of_its_own() {
        let mut names: Vec<String> = BMAD_TREES.iter().map(BmadTree::tree_name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), BMAD_TREES.len());
    }

    #[test]
    fn a_tree_of_another_version_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let bmad_tree = default_tree("6.1.0");
        assert!(bmad_tree.check_installed(directory.path()).is_err(), "nothing was laid");
        let manifest = directory.path().join("_bmad/_config/manifest.yaml");
        fs::create_dir_all(manifest.parent().unwrap()).unwrap();
        fs::write(&manifest, "installation:\n  version: 6.1.1\n").unwrap();
        assert_eq!(
            bmad_tree.check_installed(directory.path()).unwrap_err().to_string(),
            "the tree says version 6.1.1, not 6.1.0"
        );
        fs::write(&manifest, "installation:\n  version: 6.1.0\n").unwrap();
        assert!(bmad_tree.check_installed(directory.path()).is_ok());
    }

    #[test]
    fn the_installer_is_found_at_its_place_in_either_era() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(find_installer(directory.path()), None);
        let old_installer = directory.path().join("node_modules/bmad-method/tools/cli/bmad-cli.js");
        fs::create_dir_all(old_installer.parent().unwrap()).unwrap();
        fs::write(&old_installer, "").unwrap();
        assert_eq!(find_installer(directory.path()), Some(old_installer));
    }
}
