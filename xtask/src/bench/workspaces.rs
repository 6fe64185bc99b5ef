//! Measures the cost of task workspaces: git's part, and that the cost depends only on what has changed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::BuiltPrograms;
use super::binary_runs::children_cpu_ms;
use super::calibration::CalibrationUnit;
use super::table::{BenchFigure, BenchRow, BenchTime};

/// The bytes of each file of the project.
const FILE_BYTES: usize = 8 << 10;
const REVIEW_COUNT: u32 = 5;
const BYTES_PER_MEGABYTE: usize = 1 << 20;

/// The size of the project, and of a change in it.
struct ProjectSize {
    file_count: usize,
    /// The number of bytes that change between two reviews; the double of it is measured, too.
    changed_bytes: usize,
}

const FULL_SIZE: ProjectSize = ProjectSize { file_count: 2_000, changed_bytes: 48 * BYTES_PER_MEGABYTE };
const SHORT_SIZE: ProjectSize = ProjectSize { file_count: 200, changed_bytes: 8 * BYTES_PER_MEGABYTE };

const AGENT_SCRIPT: &str = "tasks:
  - {task: 'round-1/review/*', steps: [{findings: [{severity: high, category: a, description: b, quote: 'Fast.'}]}]}
  - {task: '*/review/*', steps: [{findings: []}]}
  - {task: '*/fix/*', fix: [{match: b, replace: 'Fast.', with: '200 ms.', description: d}]}
  - {task: '*', steps: []}
";

/// A project with a repository, and a git that counts how often it is started.
struct BenchProject {
    directory: TempDir,
    starts_path: PathBuf,
}

impl BenchProject {
    fn new(file_count: usize) -> Result<BenchProject> {
        let directory = TempDir::new()?;
        let project = BenchProject { starts_path: directory.path().join("starts"), directory };
        let root = project.project_root();
        fs::create_dir_all(root.join("src"))?;
        for file_number in 0..file_count {
            fs::write(root.join(format!("src/{file_number}.txt")), generate_text(FILE_BYTES, file_number))?;
        }
        fs::write(root.join("script.yaml"), AGENT_SCRIPT)?;
        fs::write(
            root.join("tribunal.yaml"),
            "level: minimal\ntasks: {required_issues: 0}\nagents: {use: [s], s: {driver: replay, script: script.yaml}}\n",
        )?;
        // The reviewed file is ignored by git, so that changing it between reviews changes no tracked file.
        fs::write(root.join(".gitignore"), ".tribunal/\nplan.md\n")?;
        for git_args in [
            &["init", "-q"][..],
            &["add", "-A"],
            &["-c", "user.name=p", "-c", "user.email=p@example.org", "commit", "-qm", "all"],
        ] {
            if !Command::new("git").args(git_args).current_dir(&root).status()?.success() {
                bail!("git {git_args:?} failed");
            }
        }
        project.install_counting_git()?;
        Ok(project)
    }

    fn project_root(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    /// Puts a counting git in front of the real one.
    fn install_counting_git(&self) -> Result<()> {
        let search_path = std::env::var("PATH").unwrap_or_default();
        // The absolute path of the real git keeps the script from calling itself.
        let real_git =
            std::env::split_paths(&search_path).map(|path_dir| path_dir.join("git")).find(|git| git.is_file());
        let real_git = real_git.context("there is no git")?;
        let counting_git = self.bin_dir().join("git");
        fs::create_dir_all(self.bin_dir())?;
        let script =
            format!("#!/bin/sh\necho >> '{}'\nexec '{}' \"$@\"\n", self.starts_path.display(), real_git.display());
        fs::write(&counting_git, script)?;
        Ok(fs::set_permissions(counting_git, fs::Permissions::from_mode(0o755))?)
    }

    fn bin_dir(&self) -> PathBuf {
        self.directory.path().join("bin")
    }

    /// Runs one review of a flawed plan, and returns its CPU time and the number of git processes.
    fn run_review(&self, built: &BuiltPrograms, extra_args: &[&str]) -> Result<(f64, f64)> {
        // An earlier review may have fixed the plan, so it is written anew.
        fs::write(self.project_root().join("plan.md"), "# Plan\n\n## Goals\n\nFast.\n")?;
        fs::write(&self.starts_path, "")?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let search_paths = [self.bin_dir()].into_iter().chain(std::env::split_paths(&path));
        let cpu_before = children_cpu_ms()?;
        let mut command = built.tribunal_command();
        command.args(["review", "plan.md"]).args(extra_args).current_dir(self.project_root());
        command
            .env("PATH", std::env::join_paths(search_paths)?)
            .env("XDG_STATE_HOME", self.directory.path().join("state"));
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        // Exit code 3 means that the review changed nothing and that findings are open.
        if !matches!(status.code(), Some(0 | 3)) {
            bail!("{command:?} ended: {status}");
        }
        Ok((children_cpu_ms()? - cpu_before, fs::read_to_string(&self.starts_path)?.lines().count() as f64))
    }

    /// The mean CPU time of one review after this many bytes were changed.
    fn mean_review_cpu(&self, built: &BuiltPrograms, changed_bytes: usize) -> Result<f64> {
        let mut total_ms = 0.0;
        for turn in 0..REVIEW_COUNT {
            change_files(&self.project_root(), changed_bytes, turn as usize)?;
            total_ms += self.run_review(built, &["--no-fix"])?.0;
        }
        Ok(total_ms / f64::from(REVIEW_COUNT))
    }
}

fn generate_text(byte_count: usize, seed: usize) -> String {
    format!("{seed:08}\n").repeat(byte_count / 9)
}

/// Changes eight files, so that both amounts have the same number of files.
fn change_files(root: &Path, total_bytes: usize, turn: usize) -> Result<()> {
    for file_number in 0..8 {
        fs::write(root.join(format!("src/{file_number}.txt")), generate_text(total_bytes / 8, turn))?;
    }
    Ok(())
}

pub fn measure_workspaces(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let ProjectSize { file_count, changed_bytes } = if built.is_short() { SHORT_SIZE } else { FULL_SIZE };
    let project = BenchProject::new(file_count)?;
    // The first workspace reads everything and caches what it learns, so later ones are faster.
    let (first_ms, _) = project.run_review(built, &["--no-fix"])?;
    let (_, review_starts) = project.run_review(built, &["--no-fix"])?;
    let (_, fix_starts) = project.run_review(built, &[])?;
    // The time for a small change is the base; the difference to it is the cost of the larger change.
    let unchanged_ms = project.mean_review_cpu(built, 8 * FILE_BYTES)?;
    let (changed_ms, doubled_ms) = (
        project.mean_review_cpu(built, changed_bytes)? - unchanged_ms,
        project.mean_review_cpu(built, 2 * changed_bytes)? - unchanged_ms,
    );
    Ok(vec![
        // Two processes create the snapshot; each of three agents gets a copy of it, for which no git is needed, and after each
        // one external edits are looked for.
        BenchRow::new(
            "git processes: one snapshot, three agents",
            BenchFigure::Count(review_starts),
            BenchFigure::Count(5.0),
        ),
        BenchRow::new(
            "git processes: a fix, landed and reviewed again",
            BenchFigure::Count(fix_starts),
            BenchFigure::Count(26.0),
        ),
        BenchRow::from_time(
            &format!("a review in {file_count} files, the first"),
            BenchTime::Cpu(first_ms),
            CalibrationUnit::Git.without_limit(),
        ),
        BenchRow::from_time(
            &format!("a review in {file_count} files, little changed"),
            BenchTime::Cpu(unchanged_ms),
            CalibrationUnit::Git.at_most(800.0),
        ),
        BenchRow::from_time(
            &format!("  and {} MB more changed", changed_bytes / BYTES_PER_MEGABYTE),
            BenchTime::Cpu(changed_ms),
            CalibrationUnit::Git.without_limit(),
        ),
        BenchRow::new(
            "twice as much changed: times the CPU",
            BenchFigure::Ratio(doubled_ms / changed_ms.max(1.0)),
            BenchFigure::Ratio(2.6),
        ),
    ])
}
