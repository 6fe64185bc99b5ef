//! The effects on workspaces with real processes: setup, hooks, agents.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use tribunal_engine::ids::{CommitId, Key};
use tribunal_testkit::samples;
use tribunal_workflows::{
    development::workspace::TargetBranch,
    runs::{
        effect::{AskAgent, AskOutcome, Effect, Reply, RoutedEffect},
        settings::DriverSpec,
    },
    tasks::{
        brief::{AgentTask, WorkspaceKind},
        client::JobKind,
        instructions::InstructionBrief,
        purpose::{ExpectedAnswer, TaskPurpose},
    },
};

use super::*;
use crate::{
    effects::{perform_effect, test_context::new_effect_context},
    project::Project,
};

/// A repository of a user with one commit.
struct DevelopmentScene {
    temp_dir: tempfile::TempDir,
    context: Arc<EffectContext>,
    effect_count: std::cell::Cell<u32>,
    /// What the next commit is made of; `None` takes what is there.
    tree: std::cell::Cell<Option<TreeId>>,
}

impl DevelopmentScene {
    fn new(prepare: impl FnOnce(&mut EffectContext)) -> DevelopmentScene {
        let temp_dir = tempfile::tempdir().unwrap();
        let root = temp_dir.path().join("project");
        fs::create_dir(&root).unwrap();
        run_git(&root, &["init", "-q", "-b", "main"]);
        for (key, value) in [("user.name", "Ada"), ("user.email", "ada@example.org"), ("commit.gpgSign", "false")] {
            run_git(&root, &["config", key, value]);
        }
        fs::write(root.join("a.txt"), "a\n").unwrap();
        run_git(&root, &["add", "-A"]);
        run_git(&root, &["commit", "-q", "-m", "first"]);
        let project = Project::from_root(&root);
        project.prepare_home().unwrap();
        let mut context = new_effect_context(project, samples::sample_plan().order);
        context.clones_root = Some(temp_dir.path().join("cache"));
        prepare(&mut context);
        DevelopmentScene {
            temp_dir,
            context: Arc::new(context),
            effect_count: Default::default(),
            tree: Default::default(),
        }
    }

    fn root(&self) -> &Path {
        self.context.project.root()
    }

    fn perform(&self, effect: Effect) -> PerformedEffect {
        self.effect_count.set(self.effect_count.get() + 1);
        let effect_key = Key::new(format!("effect-{}", self.effect_count.get()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let RoutedEffect::World(effect) = effect.into_routed() else { panic!("only the host answers it") };
        runtime.block_on(perform_effect(self.context.clone(), effect_key, effect, 1, 0)).unwrap()
    }

    fn try_open(&self) -> OpenOutcome {
        let branch = TargetBranch { name: "main".into(), created_at: None };
        let open = OpenWorkspace { workspace: "dev".into(), place: DevelopmentPlace::Clone, branch, scratchpad: None };
        match self.perform(Effect::OpenWorkspace(open)).reply {
            Reply::OpenWorkspace(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn open(&self) -> OpenedWorkspace {
        match self.try_open() {
            OpenOutcome::Opened(opened) => opened,
            other => panic!("{other:?}"),
        }
    }

    fn commit(&self, message: &str) -> CommitOutcome {
        self.commit_in_form(message, false, false)
    }

    fn commit_in_form(&self, message: &str, squash: bool, keeps_ref: bool) -> CommitOutcome {
        let (workspace, message) = ("dev".into(), message.into());
        let request = CommitWork { workspace, message, run_hooks: true, squash, keeps_ref, tree: self.tree.take() };
        match self.perform(Effect::Commit(request)).reply {
            Reply::Commit(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn add_hook(&self, name: &str, script: &str) {
        let hook_path = self.root().join(".git/hooks").join(name);
        fs::create_dir_all(hook_path.parent().unwrap()).unwrap();
        fs::write(&hook_path, script).unwrap();
        fs::set_permissions(&hook_path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        run_git(self.root(), arguments)
    }
}

#[test]
fn a_commit_with_a_ref_of_its_own_stays_when_the_work_becomes_one_commit() {
    let scene = DevelopmentScene::new(|_| {});
    let opened = scene.open();
    let file = Path::new(&opened.path).join("a.txt");
    fs::write(&file, "by hand\n").unwrap();
    let kept = committed(scene.commit_in_form("kept", false, true));
    fs::write(&file, "agent\n").unwrap();
    let last = committed(scene.commit_in_form("work", true, false));
    assert_eq!(scene.git(&["rev-parse", "refs/tribunal/work/work-aaaa/dev"]), last.as_str());
    let kept_ref = format!("refs/tribunal/work/work-aaaa/dev-{}", kept.short_hex());
    assert_eq!(scene.git(&["show", &format!("{kept_ref}:a.txt")]), "by hand");
}

fn run_git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    for name in crate::git::REDIRECTING_VARIABLES {
        command.env_remove(name);
    }
    let output = command.args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_string()
}

fn committed(outcome: CommitOutcome) -> CommitId {
    match outcome {
        CommitOutcome::Committed { commit } => commit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn setup_commands_run_once_and_a_failing_one_leaves_nothing() {
    let scene = DevelopmentScene::new(|context| {
        context.settings.workspace.setup = vec![
            CommandLine::from_shell_line("echo run >> ../../count"),
            CommandLine::Argv(vec!["test".into(), "-e".into(), "../../allowed".into()]),
        ];
    });
    let OpenOutcome::SetupFailed(failed) = scene.try_open() else { panic!("it was set up") };
    assert_eq!(failed.status, CheckStatus::Failed { exit_code: 1 });
    let run_dir = scene.context.workspace_home().unwrap().project_dir().join("work-aaaa");
    let listed: Vec<_> = fs::read_dir(&run_dir).unwrap().map(|item| item.unwrap().file_name()).collect();
    assert_eq!(listed, ["count"]);
    fs::write(run_dir.join("allowed"), "").unwrap();
    let opened = scene.open();
    assert!(opened.path.ends_with("/tree"), "{}", opened.path);
    assert_eq!(scene.open(), opened);
    assert_eq!(fs::read_to_string(run_dir.join("count")).unwrap(), "run\nrun\n");
    let closed = scene.perform(Effect::CloseWorkspace(CloseWorkspace { workspace: "dev".into() })).reply;
    assert_eq!(closed, Reply::CloseWorkspace(CloseOutcome::Closed));
    assert!(!Path::new(&opened.path).exists());
}

#[test]
fn hooks_see_what_is_committed_and_may_change_the_message() {
    let scene = DevelopmentScene::new(|_| {});
    let opened = scene.open();
    scene.add_hook("pre-commit", "#!/bin/sh\ngit diff --cached --name-only > ../seen\ngit rev-parse HEAD >> ../seen\n");
    scene.add_hook("commit-msg", "#!/bin/sh\necho 'Reviewed-by: nobody' >> \"$1\"\n");
    scene.add_hook("prepare-commit-msg", "#!/bin/sh\nexit 1\n");
    let mut parent = opened.base.to_string();
    for path in ["one.txt", "two.txt"] {
        fs::write(Path::new(&opened.path).join(path), "x").unwrap();
        let commit = committed(scene.commit(path));
        // A hook sees only what is new since the last commit.
        let seen = fs::read_to_string(Path::new(&opened.path).join("../seen")).unwrap();
        assert_eq!(seen, format!("{path}\n{parent}\n"));
        assert_eq!(scene.git(&["log", "-1", "--format=%B", commit.as_str()]), format!("{path}\nReviewed-by: nobody"));
        parent = commit.to_string();
    }
    assert!(matches!(scene.commit("nothing new"), CommitOutcome::Unchanged { tip } if tip.as_str() == parent));
}

/// A hook runs code that agents have changed, so it must not decide what the next git command of ours runs.
#[test]
fn a_hook_cannot_leave_settings_for_git_behind() {
    let scene = DevelopmentScene::new(|_| {});
    let opened = scene.open();
    let work_dir = Path::new(&opened.path).join("..");
    scene.add_hook(
        "pre-commit",
        "#!/bin/sh\nparent=$(cd .. && pwd)\ngit config filter.evil.clean \"touch $parent/ran; cat\"\n\
         echo '* filter=evil' > \"$GIT_DIR/info/attributes\"\necho /nowhere > \"$GIT_DIR/commondir\"\n\
         ln -s \"$parent/linked\" \"$GIT_DIR/ORIG_HEAD\"\necho /elsewhere > \"$GIT_DIR/objects/info/alternates\"\n",
    );
    for path in ["one.txt", "two.txt"] {
        fs::write(Path::new(&opened.path).join(path), "x").unwrap();
        let commit = committed(scene.commit(path));
        assert_eq!(scene.git(&["show", &format!("{commit}:{path}")]), "x");
    }
    assert!(!work_dir.join("ran").exists() && !work_dir.join("git-settings").exists());
    let git_dir = work_dir.join("control.git");
    assert!(!git_dir.join("commondir").exists() && git_dir.join("ORIG_HEAD").symlink_metadata().is_err());
    assert!(!fs::read_to_string(git_dir.join("config")).unwrap().contains("evil"));
}

#[test]
fn a_hook_can_refuse_and_what_it_rewrites_is_handed_back() {
    let scene = DevelopmentScene::new(|_| {});
    let opened = scene.open();
    let file = Path::new(&opened.path).join("a.txt");
    let refusal = |script: &str| {
        fs::write(&file, "agent\n").unwrap();
        scene.add_hook("pre-commit", script);
        match scene.commit("work") {
            CommitOutcome::Refused(refusal) => refusal,
            other => panic!("{script}: {other:?}"),
        }
    };
    let failed = refusal("#!/bin/sh\necho 'lint: bad'\nexit 2\n");
    assert_eq!((failed.status, failed.output.as_str()), (CheckStatus::Failed { exit_code: 2 }, "lint: bad\n"));
    assert!(refusal("#!/no/such/interpreter\n").status.is_environment());
    // Nothing of this was committed.
    assert_eq!(scene.git(&["rev-parse", "refs/tribunal/work/work-aaaa/dev"]), opened.base.as_str());
    fs::write(&file, "agent\n").unwrap();
    scene.add_hook("pre-commit", "#!/bin/sh\ntr a-z A-Z < a.txt > t && mv t a.txt && git add a.txt\n");
    let CommitOutcome::Rewritten { tree, paths } = scene.commit("work") else { panic!("committed") };
    assert_eq!(paths, ["a.txt"]);
    assert_eq!(scene.git(&["rev-parse", "refs/tribunal/work/work-aaaa/dev"]), opened.base.as_str());
    // The hook accepts what it has made, and only that is committed.
    fs::write(&file, "evil\n").unwrap();
    scene.tree.set(Some(tree));
    let commit = committed(scene.commit("work"));
    assert_eq!(scene.git(&["show", &format!("{commit}:a.txt")]), "AGENT");
    let hooks = crate::list_commit_hooks(scene.root());
    assert_eq!(hooks.iter().map(|hook| hook.hook).collect::<Vec<_>>(), [CommitHook::PreCommit]);
    assert_eq!(
        hooks[0].path.canonicalize().unwrap(),
        scene.root().join(".git/hooks/pre-commit").canonicalize().unwrap()
    );
}

#[test]
fn an_agent_works_in_the_workspace_and_its_state_comes_back() {
    for (script, is_answered) in
        [("echo '- [x] done' > plan.md; git rev-parse HEAD", true), ("echo '- [ ] half' > plan.md; exit 3", false)]
    {
        let scene = DevelopmentScene::new(|context| {
            let argv = vec!["/bin/sh".into(), "-c".into(), format!("cat > /dev/null; {script}")];
            context.settings.agents[0].driver = DriverSpec::Command { argv };
        });
        let opened = scene.open();
        let purpose = TaskPurpose { job: JobKind::CreateStory, expects: ExpectedAnswer::Status };
        let agent = scene.context.settings.agents[0].name.clone();
        let place = WorkspaceKind::Development { workspace: "dev".into() };
        let mut task = AgentTask::new(agent, purpose, InstructionBrief::new("Work."), place, 60_000);
        task.collect = Some(vec!["plan.md".into()]);
        let state = match scene.perform(Effect::Ask(AskAgent { task, booking: None })).reply {
            Reply::Ask(AskOutcome::Answered(reply)) if is_answered => {
                assert_eq!(reply.patch, None);
                reply.workspace.unwrap()
            }
            Reply::Ask(AskOutcome::Failed(failed_task)) if !is_answered => failed_task.workspace.unwrap(),
            other => panic!("{other:?}"),
        };
        assert_ne!(state.fingerprint, opened.state.fingerprint);
        let boxes = state.checkboxes_of("plan.md").unwrap();
        let expected = if is_answered { (1, 1, "") } else { (0, 1, "half") };
        assert_eq!((boxes.done, boxes.total, boxes.first_open.as_str()), expected);
        assert!(!scene.root().join("plan.md").exists());
        assert!(scene.temp_dir.path().exists());
    }
}

#[test]
fn a_workspace_that_is_not_open_is_a_fault() {
    let scene = DevelopmentScene::new(|_| {});
    let CommitOutcome::Failed { fault } = scene.commit("x") else { panic!("committed") };
    assert_eq!(fault.detail, "the workspace `dev` of run work-aaaa is not open");
    assert!(scene.context.development_dir("dev").is_err());
}
