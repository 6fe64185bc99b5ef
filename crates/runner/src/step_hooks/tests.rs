//! Real commands in a real directory.

use super::*;

fn hooks(front: &str) -> Hooks {
    let hooks = tribunal_bmad::hooks::read("step.md", &format!("---\nhooks:\n{front}---\n"));
    assert_eq!(hooks.problems, []);
    hooks
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

struct Bench {
    folder: tempfile::TempDir,
    masker: Masker,
}

impl Bench {
    fn new() -> Bench {
        let masker = Masker::new([("MY_TOKEN", "hunter2-hunter2-hunter2")]);
        Bench { folder: tempfile::tempdir().unwrap(), masker }
    }

    fn run(&self, hooks: &Hooks, moment: Moment, told: &Told, kept: Kept) -> Report {
        let mut step = StepHooks::new(self.folder.path().to_path_buf(), None, &self.masker);
        // All of them end by themselves sooner or later.
        step.time = Duration::from_secs(60);
        block_on(step.run(hooks, moment, told, kept))
    }

    fn stop(&self, front: &str) -> Report {
        self.run(&hooks(front), Moment::Stop, &Told::default(), Kept::default())
    }
}

fn drawn(report: &Report) -> String {
    let lines = report
        .ran
        .iter()
        .map(|ran| format!("{} {}: {:?} {:?}", ran.line, ran.end.words(), ran.stdout.text, ran.stderr.text));
    lines.chain(report.notes.iter().map(|note| format!("! {note}"))).collect::<Vec<_>>().join("\n")
}

#[test]
fn they_run_in_their_order_in_the_project_with_closed_input() {
    let bench = Bench::new();
    let front = "  Stop:\n    - echo one > order\n    - cat order; echo two >> order\n    - 'cat; cat order >&2'\n    \
        - test -f order && exit 3\n    - kill -9 $$\n    - echo last\n  SessionStart: touch never\n";
    let report = bench.stop(front);
    assert_eq!(
        drawn(&report),
        "4 done: \"\" \"\"\n5 done: \"one\\n\" \"\"\n6 done: \"\" \"one\\ntwo\\n\"\n7 exit code 3: \"\" \"\"\n\
         8 killed by signal 9: \"\" \"\"\n\
         9 done: \"last\\n\" \"\""
    );
    assert_eq!(report.failed_critically(), None);
    assert!(!bench.folder.path().join("never").exists());
}

#[test]
fn behind_a_critical_one_that_fails_nothing_runs() {
    let bench = Bench::new();
    let report = bench.stop(
        "  Stop:\n    - {command: 'true', critical: true}\n    - {command: exit 1, critical: true}\n    \
        - touch never\n    - {command: touch never, once: true}\n",
    );
    assert_eq!(
        drawn(&report),
        "4 done: \"\" \"\"\n5 exit code 1: \"\" \"\"\n6 not run: a critical one before it failed: \"\" \"\"\n\
         7 not run: a critical one before it failed: \"\" \"\""
    );
    assert_eq!(report.failed_critically().map(|ran| ran.line), Some(5));
    assert!(!bench.folder.path().join("never").exists());
    // It did not run, so it may still run later.
    assert_eq!(report.kept.ran.len(), 0);
}

#[test]
fn once_is_once_in_a_session() {
    let bench = Bench::new();
    let hooks = hooks(
        "  Stop:\n    - {command: echo once, once: true}\n    - echo ever\n  SessionStart:\n    - {command: echo once, once: true}\n",
    );
    let first = bench.run(&hooks, Moment::Stop, &Told::default(), Kept::default());
    assert_eq!(drawn(&first), "4 done: \"once\\n\" \"\"\n5 done: \"ever\\n\" \"\"");
    let kept: Kept = serde_json::from_str(&serde_json::to_string(&first.kept).unwrap()).unwrap();
    let second = bench.run(&hooks, Moment::Stop, &Told::default(), kept);
    assert_eq!(drawn(&second), "4 ran before in this session: \"\" \"\"\n5 done: \"ever\\n\" \"\"");
    let third = bench.run(&hooks, Moment::SessionStart, &Told::default(), second.kept);
    assert_eq!(drawn(&third), "7 done: \"once\\n\" \"\"");
}

#[test]
fn they_are_told_by_variables_and_by_nothing_else() {
    let bench = Bench::new();
    let show = "  PreToolUse: 'printf \"%s|\" \"$TOOL_NAME\" \"$TOOL_ARGS\" \"${EXIT_CODE-unset}\" \"$STEP\" \"$WORKFLOW\"'\n";
    let told = Told {
        tool_name: Some("Bash".into()),
        tool_args: Some("{\"command\":\"'; touch never; $(touch never) `touch never`\\n\"}".into()),
        exit_code: None,
        step: Some("step-01".into()),
        workflow: Some("prd ä".into()),
    };
    let report = bench.run(&hooks(show), Moment::PreToolUse, &told, Kept::default());
    let args = told.tool_args.as_deref().unwrap();
    assert_eq!(report.ran[0].stdout.text, format!("Bash|{args}|unset|step-01|prd ä|"));
    assert!(!bench.folder.path().join("never").exists());
    let told = Told {
        tool_args: Some("a\0b".into()),
        step: Some("x".repeat(LONGEST + 1)),
        exit_code: Some(-1),
        ..told
    };
    let report = bench.run(&hooks(show), Moment::PreToolUse, &told, Kept::default());
    assert_eq!(
        drawn(&report),
        "3 done: \"Bash||-1||prd ä|\" \"\"\n! hooks run without TOOL_ARGS: it has a NUL byte in it\n\
         ! hooks run without STEP: it is longer than the system takes"
    );
    let told = Told { step: Some("x".repeat(LONGEST)), ..Told::default() };
    let report = bench.run(&hooks("  Stop: 'echo ${#STEP}'\n"), Moment::Stop, &told, Kept::default());
    assert_eq!(report.ran[0].stdout.text, format!("{LONGEST}\n"));
}

#[test]
fn a_matcher_chooses_the_tools() {
    let bench = Bench::new();
    let hooks = hooks("  PreToolUse:\n    - {matcher: Write|Edit, command: echo writes}\n    - echo all\n");
    let lines = |tool: &str| {
        let told = Told { tool_name: Some(tool.into()), ..Told::default() };
        let report = bench.run(&hooks, Moment::PreToolUse, &told, Kept::default());
        report.ran.iter().map(|ran| ran.line).collect::<Vec<_>>()
    };
    assert_eq!(lines("Edit"), [4, 5]);
    assert_eq!(lines("Bash"), [5]);
}

#[test]
fn much_is_cut_more_is_dropped_and_too_fast_is_ended() {
    let bench = Bench::new();
    let print = |bytes: usize| format!("    - head -c {bytes} /dev/zero | tr '\\0' x\n");
    let report = bench.stop(&format!(
        "  Stop:\n{}{}{}{}{}",
        print(65_536),
        print(65_537),
        print(65_536),
        print(65_536),
        print(3)
    ));
    let shown: Vec<(usize, bool)> =
        report.ran.iter().map(|ran| (ran.stdout.text.len(), ran.stdout.cut)).collect();
    let marked = 65_536 + "\n[OUTPUT TRUNCATED AT 64KB]".len();
    assert_eq!(shown, [(65_536, false), (marked, true), (65_536, false), (65_536, false), (0, true)]);
    assert_eq!(
        report.notes,
        ["the hooks of this step have said 256 KiB; they run on, and what more they say is dropped"]
    );
    assert!(report.ran.iter().all(|ran| ran.end == HookEnd::Exited(0)));
    // The step continues: nothing more is kept, and that is not reported again.
    let report = bench.run(&hooks("  Stop: echo x\n"), Moment::Stop, &Told::default(), report.kept);
    assert_eq!((report.ran[0].stdout.text.as_str(), report.notes.len()), ("", 0));
    let report = bench.stop("  Stop: [yes, echo next]\n");
    assert_eq!(report.ran[0].end, HookEnd::Flooded);
    assert!(report.ran[0].stdout.cut && report.ran[0].stdout.text.len() < 70_000);
    assert_eq!(report.ran[1].stdout.text, "next\n");
    let report = bench.stop("  Stop: 'head -c 20000 /dev/zero | tr \"\\0\" x >&2'\n");
    assert!(report.ran[0].stderr.text.ends_with("\n[OUTPUT TRUNCATED AT 16KB]"));
}

#[test]
fn one_that_does_not_end_is_ended() {
    let bench = Bench::new();
    let mut step = StepHooks::new(bench.folder.path().to_path_buf(), None, &bench.masker);
    assert_eq!(step.time, Duration::from_secs(5));
    step.time = Duration::from_millis(300);
    let hooks = hooks("  Stop: [sleep 60, echo next]\n");
    let report = block_on(step.run(&hooks, Moment::Stop, &Told::default(), Kept::default()));
    assert_eq!(report.ran[0].end.words(), "not done after 5 s");
    assert_eq!(report.ran[1].line, 3);
}

#[test]
fn what_they_say_is_masked_and_a_missing_folder_is_said() {
    let bench = Bench::new();
    let report = bench.stop("  Stop: 'echo hunter2-hunter2-hunter2; echo hunter2-hunter2-hunter2 >&2'\n");
    assert!(!drawn(&report).contains("hunter2"), "{}", drawn(&report));
    let gone = StepHooks::new(bench.folder.path().join("gone"), None, &bench.masker);
    let stop = hooks("  Stop: {command: 'true', critical: true}\n");
    let report = block_on(gone.run(&stop, Moment::Stop, &Told::default(), Kept::default()));
    assert!(
        matches!(&report.ran[0].end, HookEnd::NotStarted(cause) if cause.contains("is gone")),
        "{report:?}"
    );
    assert!(report.failed_critically().is_some());
}
