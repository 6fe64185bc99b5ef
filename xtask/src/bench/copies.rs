//! Measures the cost of task workspaces: git's part, and that the cost depends only on what has changed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::Built;
use super::outside::children;
use super::table::{Figure, Row};

/// The size of the project: the number of files and the bytes of each.
const FILES: usize = 2_000;
const BYTES: usize = 8 << 10;
/// The number of bytes that change between two reviews; the double of it is measured, too.
const CHANGED: usize = 48 << 20;
const REVIEWS: u32 = 5;

const SCRIPT: &str = "tasks:
  - {task: 'round-1/review/*', steps: [{findings: [{severity: high, category: a, description: b, quote: 'Fast.'}]}]}
  - {task: '*/review/*', steps: [{findings: []}]}
  - {task: '*/fix/*', fix: [{match: b, replace: 'Fast.', with: '200 ms.', description: d}]}
  - {task: '*', steps: []}
";

/// A project with a repository, and a git that counts how often it is started.
struct Person {
    folder: TempDir,
    starts: PathBuf,
}

impl Person {
    fn new() -> Result<Person> {
        let folder = TempDir::new()?;
        let person = Person { starts: folder.path().join("starts"), folder };
        let root = person.root();
        fs::create_dir_all(root.join("src"))?;
        for number in 0..FILES {
            fs::write(root.join(format!("src/{number}.txt")), text(BYTES, number))?;
        }
        fs::write(root.join("script.yaml"), SCRIPT)?;
        fs::write(
            root.join("tribunal.yaml"),
            "level: minimal\ntasks: {required_issues: 0}\nagents: {use: [s], s: {driver: replay, script: script.yaml}}\n",
        )?;
        // The reviewed file is ignored by git, so that changing it between reviews changes no tracked file.
        fs::write(root.join(".gitignore"), ".tribunal/\nplan.md\n")?;
        for words in [
            &["init", "-q"][..],
            &["add", "-A"],
            &["-c", "user.name=p", "-c", "user.email=p@example.org", "commit", "-qm", "all"],
        ] {
            if !Command::new("git").args(words).current_dir(&root).status()?.success() {
                bail!("git {words:?} failed");
            }
        }
        person.count_git()?;
        Ok(person)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Puts a counting git in front of the real one.
    fn count_git(&self) -> Result<()> {
        let real = std::env::var("PATH").unwrap_or_default();
        // The absolute path of the real git keeps the script from calling itself.
        let real = std::env::split_paths(&real).map(|folder| folder.join("git")).find(|git| git.is_file());
        let real = real.context("there is no git")?;
        let counting = self.bin().join("git");
        fs::create_dir_all(self.bin())?;
        let script =
            format!("#!/bin/sh\necho >> '{}'\nexec '{}' \"$@\"\n", self.starts.display(), real.display());
        fs::write(&counting, script)?;
        Ok(fs::set_permissions(counting, fs::Permissions::from_mode(0o755))?)
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// Runs one review of a flawed plan, and returns its CPU time and the number of git processes.
    fn review(&self, built: &Built, more: &[&str]) -> Result<(f64, f64)> {
        // An earlier review may have fixed the plan, so it is written anew.
        fs::write(self.root().join("plan.md"), "# Plan\n\n## Goals\n\nFast.\n")?;
        fs::write(&self.starts, "")?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = [self.bin()].into_iter().chain(std::env::split_paths(&path));
        let before = children()?;
        let mut command = built.tribunal();
        command.args(["review", "plan.md"]).args(more).current_dir(self.root());
        command
            .env("PATH", std::env::join_paths(paths)?)
            .env("XDG_STATE_HOME", self.folder.path().join("state"));
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        // Exit code 3 means that the review changed nothing and that findings are open.
        if !matches!(status.code(), Some(0 | 3)) {
            bail!("{command:?} ended: {status}");
        }
        Ok((children()? - before, fs::read_to_string(&self.starts)?.lines().count() as f64))
    }

    /// The mean CPU time of one review after this many bytes were changed.
    fn after(&self, built: &Built, bytes: usize) -> Result<f64> {
        let mut sum = 0.0;
        for turn in 0..REVIEWS {
            change(&self.root(), bytes, turn as usize)?;
            sum += self.review(built, &["--no-fix"])?.0;
        }
        Ok(sum / f64::from(REVIEWS))
    }
}

fn text(bytes: usize, seed: usize) -> String {
    format!("{seed:08}\n").repeat(bytes / 9)
}

/// Changes eight files, so that both amounts have the same number of files.
fn change(root: &Path, bytes: usize, turn: usize) -> Result<()> {
    for number in 0..8 {
        fs::write(root.join(format!("src/{number}.txt")), text(bytes / 8, turn))?;
    }
    Ok(())
}

pub fn copies(built: &Built) -> Result<Vec<Row>> {
    let person = Person::new()?;
    // The first workspace reads everything and caches what it learns, so later ones are faster.
    let (first, _) = person.review(built, &["--no-fix"])?;
    let (_, looked) = person.review(built, &["--no-fix"])?;
    let (_, fixed) = person.review(built, &[])?;
    // The time for a small change is the base; the difference to it is the cost of the larger change.
    let none = person.after(built, 8 * BYTES)?;
    let (once, twice) = (person.after(built, CHANGED)? - none, person.after(built, 2 * CHANGED)? - none);
    Ok(vec![
        // Two processes create the workspace; three agents follow, and after each one external edits are looked for.
        Row::new("git processes: one snapshot, three agents", Figure::Count(looked), Figure::Count(5.0)),
        Row::new(
            "git processes: a fix, landed and reviewed again",
            Figure::Count(fixed),
            Figure::Count(26.0),
        ),
        Row::free("a review in 2,000 files, the first", Figure::Ms(first)),
        Row::new("a review in 2,000 files, little changed", Figure::Ms(none), Figure::Ms(1000.0)),
        Row::free("  and 48 MB more changed", Figure::Ms(once)),
        Row::new(
            "twice as much changed: times the CPU",
            Figure::Count(twice / once.max(1.0)),
            Figure::Count(2.6),
        ),
    ])
}
