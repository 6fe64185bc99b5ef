//! Workspaces for development of repositories in every state that git knows, with the real git.

mod agent_commits;
mod check_traces;
mod committing;
mod concerns;
mod guarded_refs;
mod hostile_agents;
mod integrating;
mod merged_edits;
mod opening;
mod parking;
mod rebasing;

use crate::workspaces::development::commits::CommitForm;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use tribunal_engine::ids::{CommitId, RunId};
use tribunal_workflows::development::{
    check_scripts::ChangedScript,
    checks::CommandLine,
    commits::{Integrate, IntegrateOutcome, RebaseOutcome},
    concerns::{LandingConcern, LandingGate},
    workspace::{DevelopmentPlace, OpenWorkspace, TargetBranch, WorkspaceState},
};

use super::{
    DevelopmentWorkspace, WorkspaceError, WorkspaceHome,
    commits::PreparedCommit,
    contents::StateReading,
    integrate::integrate_work,
    opening::{OpenRequest, SeedRequest, UnfinishedWorkspace, create_workspace},
};
use crate::{git::test_config::GLOBAL_CONFIG, masking::Masker, project::Project};

/// The files of bookkeeping that orders name here.
const MERGEABLE: [&str; 2] = ["board.yaml", "deferred-work.md"];

/// A user's repository, a global configuration of git, and room for workspaces.
struct UserProject {
    temp_dir: tempfile::TempDir,
    /// The directory of the project, below the temporary one.
    root_name: &'static str,
    named_seeds: Vec<String>,
}

impl UserProject {
    /// Creates a repository with one commit of these files on `main`.
    fn with_files(files: &[(&str, &str)]) -> UserProject {
        let project = UserProject::new("project");
        project.git(&["init", "-q", "-b", "main"]);
        for (path, text) in files {
            project.write(path, text);
        }
        project.commit_all("first");
        project
    }

    fn new(root_name: &'static str) -> UserProject {
        let temp_dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp_dir.path().join(root_name)).unwrap();
        let config_file = temp_dir.path().join("gitconfig");
        fs::write(
            &config_file,
            "[user]\n\tname = Ada\n\temail = ada@example.org\n[protocol \"file\"]\n\tallow = always\n",
        )
        .unwrap();
        GLOBAL_CONFIG.set(Some(config_file));
        UserProject { temp_dir, root_name, named_seeds: Vec::new() }
    }

    /// Adds to the user's own configuration.
    fn add_global_config(&self, text: &str) {
        let config_file = self.temp_dir.path().join("gitconfig");
        fs::write(&config_file, fs::read_to_string(&config_file).unwrap() + text).unwrap();
    }

    fn root(&self) -> PathBuf {
        self.temp_dir.path().join(self.root_name)
    }

    fn sibling(&self, name: &str) -> PathBuf {
        self.temp_dir.path().join(name)
    }

    fn write(&self, path: &str, text: &str) {
        write_file(&self.root().join(path), text);
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.root(), arguments)
    }

    fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        for name in crate::git::REDIRECTING_VARIABLES {
            command.env_remove(name);
        }
        command
            .env("GIT_CONFIG_GLOBAL", self.temp_dir.path().join("gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", self.temp_dir.path());
        let output = command.args(arguments).current_dir(directory).output().unwrap();
        let stderr_text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {stderr_text}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_string()
    }

    fn commit_all(&self, message: &str) -> CommitId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.tip("HEAD")
    }

    fn tip(&self, revision: &str) -> CommitId {
        CommitId::new(self.git(&["rev-parse", revision]))
    }

    fn home(&self) -> WorkspaceHome {
        WorkspaceHome { project: Project::from_root(self.root()), clones_root: self.sibling("cache") }
    }

    fn create(&self, place: DevelopmentPlace, branch: &TargetBranch) -> Result<UnfinishedWorkspace, WorkspaceError> {
        let open = OpenWorkspace { workspace: "dev".into(), place, branch: branch.clone(), scratchpad: None };
        let usual = ["CLAUDE.md".to_string(), "_bmad".to_string()];
        create_workspace(
            &self.home(),
            OpenRequest {
                run_id: &run_id(),
                open: &open,
                seeds: SeedRequest { named: &self.named_seeds, usual: &usual },
                own_files: &["docs/reviews/".to_string(), "docs/reports/tribunal-*.md".to_string()],
            },
        )
    }

    fn open(&self) -> DevelopmentWorkspace {
        self.create(DevelopmentPlace::Clone, &main_branch()).unwrap().mark_complete().unwrap()
    }

    fn open_in_place(&self) -> DevelopmentWorkspace {
        self.create(DevelopmentPlace::InPlace, &main_branch()).unwrap().mark_complete().unwrap()
    }

    /// Opens a new workspace in place of the last one.
    fn open_again(&self) -> DevelopmentWorkspace {
        super::close_workspace(&self.home(), &run_id(), "dev").unwrap();
        self.open()
    }

    fn reopen(&self) -> DevelopmentWorkspace {
        self.home().find_workspace(&run_id(), "dev").unwrap().unwrap()
    }

    fn integrate(&self, workspace: &DevelopmentWorkspace, expected: &CommitId, commit: &CommitId) -> IntegrateOutcome {
        let request = Integrate {
            verified: None,
            workspace: "dev".into(),
            branch: main_branch(),
            expected: expected.clone(),
            commit: commit.clone(),
            unchanged_checks: Vec::new(),
            gate: LandingGate::open(),
            mergeable: MERGEABLE.map(String::from).to_vec(),
            only_looks: false,
        };
        integrate_work(workspace, &request, &Masker::new([])).unwrap()
    }
}

fn run_id() -> RunId {
    RunId::new("loop-x1")
}

fn main_branch() -> TargetBranch {
    TargetBranch { name: "main".into(), created_at: None }
}

fn write_file(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl DevelopmentWorkspace {
    fn write(&self, path: &str, text: &str) {
        write_file(&self.agent_dir().join(path), text);
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.agent_dir().join(path)).unwrap()
    }

    fn reading(&self) -> StateReading {
        self.read_state(&[], &Masker::new([])).unwrap()
    }

    fn state(&self) -> WorkspaceState {
        self.reading().state
    }

    fn changes(&self) -> Vec<String> {
        self.state().changed.into_iter().map(|changed| format!("{} {}", changed.change, changed.path)).collect()
    }

    /// Prepares a commit of what is there.
    fn prepare(&self, request: &str, commit_form: CommitForm) -> PreparedCommit {
        self.prepare_commit(&self.freeze_content(&Masker::new([])).unwrap().tree, request, commit_form).unwrap()
    }

    /// Commits without hooks.
    fn commit(&self, message: &str) -> CommitId {
        match self.prepare(message, CommitForm::Added) {
            PreparedCommit::Ready(ready) => self.finish_commit(&ready, message, message).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}
