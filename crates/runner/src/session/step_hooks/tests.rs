//! Real commands in a real directory.

use super::*;

fn parse_hooks(front_matter: &str) -> WorkflowHooks {
    let hooks = tribunal_bmad::hooks::read_hooks("step.md", &format!("---\nhooks:\n{front_matter}---\n"));
    assert_eq!(hooks.problems, []);
    hooks
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn failed_critical_hook(report: &HookReport) -> Option<&HookRun> {
    report.hook_runs.iter().find(|hook_run| hook_run.is_critical && hook_run.outcome.is_failure())
}

struct HookBench {
    temp_dir: tempfile::TempDir,
    masker: Masker,
}

impl HookBench {
    fn new() -> HookBench {
        let masker = Masker::new([("MY_TOKEN", "hunter2-hunter2-hunter2")]);
        HookBench { temp_dir: tempfile::tempdir().unwrap(), masker }
    }

    fn run_hooks(
        &self,
        hooks: &WorkflowHooks,
        moment: WorkflowHookMoment,
        variables: &HookVariables,
        memory: HookMemory,
    ) -> HookReport {
        let mut hook_runner = StepHookRunner::new(self.temp_dir.path().to_path_buf(), None, &self.masker);
        // All of them end by themselves sooner or later.
        hook_runner.time_limit = Duration::from_secs(60);
        block_on(hook_runner.run_hooks(hooks, moment, variables, memory))
    }

    fn run_stop_hooks(&self, front_matter: &str) -> HookReport {
        self.run_hooks(
            &parse_hooks(front_matter),
            WorkflowHookMoment::Stop,
            &HookVariables::default(),
            HookMemory::default(),
        )
    }
}

fn render_report(report: &HookReport) -> String {
    let lines = report.hook_runs.iter().map(|hook_run| {
        format!(
            "{} {}: {:?} {:?}",
            hook_run.line_number,
            hook_run.outcome.describe(),
            hook_run.stdout.kept_text,
            hook_run.stderr.kept_text
        )
    });
    lines.chain(report.notes.iter().map(|note| format!("! {note}"))).collect::<Vec<_>>().join("\n")
}

#[test]
fn hooks_run_in_order_in_the_project_with_closed_input() {
    let bench = HookBench::new();
    let front_matter = "  Stop:\n    - echo one > order\n    - cat order; echo two >> order\n    - 'cat; cat order >&2'\n    \
        - test -f order && exit 3\n    - kill -9 $$\n    - echo last\n  SessionStart: touch never\n";
    let report = bench.run_stop_hooks(front_matter);
    assert_eq!(
        render_report(&report),
        "4 done: \"\" \"\"\n5 done: \"one\\n\" \"\"\n6 done: \"\" \"one\\ntwo\\n\"\n7 exit code 3: \"\" \"\"\n\
         8 killed by signal 9: \"\" \"\"\n\
         9 done: \"last\\n\" \"\""
    );
    assert_eq!(failed_critical_hook(&report), None);
    assert!(!bench.temp_dir.path().join("never").exists());
}

#[test]
fn nothing_runs_after_a_critical_hook_that_fails() {
    let bench = HookBench::new();
    let report = bench.run_stop_hooks(
        "  Stop:\n    - {command: 'true', critical: true}\n    - {command: exit 1, critical: true}\n    \
        - touch never\n    - {command: touch never, once: true}\n",
    );
    assert_eq!(
        render_report(&report),
        "4 done: \"\" \"\"\n5 exit code 1: \"\" \"\"\n6 skipped: an earlier critical hook failed: \"\" \"\"\n\
         7 skipped: an earlier critical hook failed: \"\" \"\""
    );
    assert_eq!(failed_critical_hook(&report).map(|ran| ran.line_number), Some(5));
    assert!(!bench.temp_dir.path().join("never").exists());
    // It did not run, so it may still run later.
    assert_eq!(report.memory.ran.len(), 0);
}

#[test]
fn once_is_once_in_a_session() {
    let bench = HookBench::new();
    let hooks = parse_hooks(
        "  Stop:\n    - {command: echo once, once: true}\n    - echo ever\n  SessionStart:\n    - {command: echo once, once: true}\n",
    );
    let first = bench.run_hooks(&hooks, WorkflowHookMoment::Stop, &HookVariables::default(), HookMemory::default());
    assert_eq!(render_report(&first), "4 done: \"once\\n\" \"\"\n5 done: \"ever\\n\" \"\"");
    let memory: HookMemory = serde_json::from_str(&serde_json::to_string(&first.memory).unwrap()).unwrap();
    let second = bench.run_hooks(&hooks, WorkflowHookMoment::Stop, &HookVariables::default(), memory);
    assert_eq!(render_report(&second), "4 already ran in this session: \"\" \"\"\n5 done: \"ever\\n\" \"\"");
    let third = bench.run_hooks(&hooks, WorkflowHookMoment::SessionStart, &HookVariables::default(), second.memory);
    assert_eq!(render_report(&third), "7 done: \"once\\n\" \"\"");
}

#[test]
fn hooks_get_their_input_through_variables_only() {
    let bench = HookBench::new();
    let show =
        "  PreToolUse: 'printf \"%s|\" \"$TOOL_NAME\" \"$TOOL_ARGS\" \"${EXIT_CODE-unset}\" \"$STEP\" \"$WORKFLOW\"'\n";
    let variables = HookVariables {
        tool_name: Some("Bash".into()),
        tool_args: Some("{\"command\":\"'; touch never; $(touch never) `touch never`\\n\"}".into()),
        exit_code: None,
        step: Some("step-01".into()),
        workflow: Some("prd ä".into()),
    };
    let report = bench.run_hooks(&parse_hooks(show), WorkflowHookMoment::PreToolUse, &variables, HookMemory::default());
    let arguments = variables.tool_args.as_deref().unwrap();
    assert_eq!(report.hook_runs[0].stdout.kept_text, format!("Bash|{arguments}|unset|step-01|prd ä|"));
    assert!(!bench.temp_dir.path().join("never").exists());
    let variables = HookVariables {
        tool_args: Some("a\0b".into()),
        step: Some("x".repeat(MAX_VARIABLE_BYTES + 1)),
        exit_code: Some(-1),
        ..variables
    };
    let report = bench.run_hooks(&parse_hooks(show), WorkflowHookMoment::PreToolUse, &variables, HookMemory::default());
    assert_eq!(
        render_report(&report),
        "3 done: \"Bash||-1||prd ä|\" \"\"\n! hooks run without TOOL_ARGS: its value contains a NUL byte\n\
         ! hooks run without STEP: its value is too long for the system"
    );
    let variables = HookVariables { step: Some("x".repeat(MAX_VARIABLE_BYTES)), ..HookVariables::default() };
    let report = bench.run_hooks(
        &parse_hooks("  Stop: 'echo ${#STEP}'\n"),
        WorkflowHookMoment::Stop,
        &variables,
        HookMemory::default(),
    );
    assert_eq!(report.hook_runs[0].stdout.kept_text, format!("{MAX_VARIABLE_BYTES}\n"));
}

#[test]
fn a_matcher_chooses_the_tools() {
    let bench = HookBench::new();
    let hooks = parse_hooks("  PreToolUse:\n    - {matcher: Write|Edit, command: echo writes}\n    - echo all\n");
    let lines = |tool: &str| {
        let variables = HookVariables { tool_name: Some(tool.into()), ..HookVariables::default() };
        let report = bench.run_hooks(&hooks, WorkflowHookMoment::PreToolUse, &variables, HookMemory::default());
        report.hook_runs.iter().map(|hook_run| hook_run.line_number).collect::<Vec<_>>()
    };
    assert_eq!(lines("Edit"), [4, 5]);
    assert_eq!(lines("Bash"), [5]);
}

#[test]
fn much_is_cut_more_is_dropped_and_too_fast_is_ended() {
    let bench = HookBench::new();
    let print = |bytes: usize| format!("    - head -c {bytes} /dev/zero | tr '\\0' x\n");
    let report = bench.run_stop_hooks(&format!(
        "  Stop:\n{}{}{}{}{}",
        print(65_536),
        print(65_537),
        print(65_536),
        print(65_536),
        print(3)
    ));
    let shown: Vec<(usize, bool)> = report
        .hook_runs
        .iter()
        .map(|hook_run| (hook_run.stdout.kept_text.len(), hook_run.stdout.is_truncated))
        .collect();
    let marked = 65_536 + "\n[OUTPUT TRUNCATED AT 64KB]".len();
    assert_eq!(shown, [(65_536, false), (marked, true), (65_536, false), (65_536, false), (0, true)]);
    assert_eq!(
        report.notes,
        ["the hooks of this step printed more than 256 KiB; they keep running, but further output is dropped"]
    );
    assert!(report.hook_runs.iter().all(|ran| ran.outcome == HookOutcome::Exited(0)));
    // The step continues: nothing more is kept, and that is not reported again.
    let report = bench.run_hooks(
        &parse_hooks("  Stop: echo x\n"),
        WorkflowHookMoment::Stop,
        &HookVariables::default(),
        report.memory,
    );
    assert_eq!((report.hook_runs[0].stdout.kept_text.as_str(), report.notes.len()), ("", 0));
    let report = bench.run_stop_hooks("  Stop: [yes, echo next]\n");
    assert_eq!(report.hook_runs[0].outcome, HookOutcome::Flooded);
    assert!(report.hook_runs[0].stdout.is_truncated && report.hook_runs[0].stdout.kept_text.len() < 70_000);
    assert_eq!(report.hook_runs[1].stdout.kept_text, "next\n");
    let report = bench.run_stop_hooks("  Stop: 'head -c 20000 /dev/zero | tr \"\\0\" x >&2'\n");
    assert!(report.hook_runs[0].stderr.kept_text.ends_with("\n[OUTPUT TRUNCATED AT 16KB]"));
}

#[test]
fn a_hook_that_does_not_end_is_ended() {
    let bench = HookBench::new();
    let mut step = StepHookRunner::new(bench.temp_dir.path().to_path_buf(), None, &bench.masker);
    assert_eq!(step.time_limit, Duration::from_secs(5));
    step.time_limit = Duration::from_millis(300);
    let hooks = parse_hooks("  Stop: [sleep 60, echo next]\n");
    let report =
        block_on(step.run_hooks(&hooks, WorkflowHookMoment::Stop, &HookVariables::default(), HookMemory::default()));
    assert_eq!(report.hook_runs[0].outcome.describe(), "timed out after 5 s");
    assert_eq!(report.hook_runs[1].line_number, 3);
}

#[test]
fn hook_output_is_masked_and_a_missing_folder_is_reported() {
    let bench = HookBench::new();
    let report = bench.run_stop_hooks("  Stop: 'echo hunter2-hunter2-hunter2; echo hunter2-hunter2-hunter2 >&2'\n");
    assert!(!render_report(&report).contains("hunter2"), "{}", render_report(&report));
    let gone = StepHookRunner::new(bench.temp_dir.path().join("gone"), None, &bench.masker);
    let stop = parse_hooks("  Stop: {command: 'true', critical: true}\n");
    let report =
        block_on(gone.run_hooks(&stop, WorkflowHookMoment::Stop, &HookVariables::default(), HookMemory::default()));
    assert!(
        matches!(&report.hook_runs[0].outcome, HookOutcome::NotStarted(cause) if cause.contains("no longer exists")),
        "{report:?}"
    );
    assert!(failed_critical_hook(&report).is_some());
}
