//! Agents as processes: working ones, failing ones, and ones that write where they must not.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use crate::common::{PRD, Sandbox, scripted_agent};

#[test]
fn any_command_line_can_be_an_agent() {
    let sandbox = Sandbox::demo();
    let ran = sandbox.run(&["review", PRD]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("12 raised: 10 fixed, 2 dismissed"), "{}", ran.err);
}

#[test]
fn an_agent_that_is_not_installed() {
    let sandbox = Sandbox::demo();
    sandbox.write(
        "tribunal.yaml",
        "agents: {use: [mine], mine: {driver: command, argv: [surely-not-installed]}}\n",
    );
    let ran = sandbox.run(&["review", PRD]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("failed · an agent or the environment failed"), "{}", ran.err);
    assert!(
        ran.err.contains("no reviewer answered: agent `mine`: `surely-not-installed` was not found"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("tribunal resume prd-"), "{}", ran.err);
}

#[test]
fn an_agent_that_dies_at_once_can_be_mended_and_the_run_goes_on() {
    let dies = "tasks: [{task: '*', steps: [{complain: 'not signed in'}, {exit: 41}]}]\n";
    let sandbox = Sandbox::scripted(dies);
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("agent `scripted` ended with exit code 41: not signed in"), "{}", ran.err);
    assert!(ran.err.contains("tried once more"), "{}", ran.err);
    sandbox.write("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("resolved"), "{}", ran.err);
    assert_eq!(sandbox.runs().len(), 1);
}

#[test]
fn changed_settings_are_taken_in_only_when_asked_for() {
    let sandbox = Sandbox::scripted("tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let good = sandbox.read("tribunal.yaml");
    let broken =
        "tier: 0\nagents: {use: [scripted], scripted: {driver: command, argv: [surely-not-installed]}}\n";
    sandbox.write("tribunal.yaml", broken);
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(5));
    sandbox.write("tribunal.yaml", &good);
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("(--reload, if you changed tribunal.yaml)"), "{}", ran.err);
    let ran = sandbox.run(&["resume", "--reload"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("changed settings were taken in"), "{}", ran.err);
}

#[test]
fn a_reviewer_that_writes_changes_nothing_of_the_person_s() {
    let sandbox = Sandbox::scripted(
        "tasks: [{task: '*', steps: [{write: {file: plan.md, text: vandalism}}, {write: {file: new.md, text: x}}, {findings: []}]}]\n",
    );
    let before = sandbox.read("plan.md");
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(0));
    assert_eq!(sandbox.read("plan.md"), before);
    assert!(!sandbox.path("new.md").exists());
}

const RAISE: &str = "
  - task: '*/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
";

#[test]
fn a_fixer_that_touches_other_files_is_not_landed() {
    let sandbox = Sandbox::scripted(&format!(
        "tasks:{RAISE}
  - task: '*/fix/*'
    steps: [{{write: {{file: other.md, text: x}}}}]
    fix: [{{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}}]
"
    ));
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("it changed other.md, which it may not"), "{}", ran.err);
    assert!(sandbox.read("plan.md").contains("It shall be fast."));
    assert!(!sandbox.path("other.md").exists());
}

/// A project whose fixer performs these steps in its workspace before it claims FIXED.
fn fixer(steps: &str) -> Sandbox {
    Sandbox::scripted(&format!(
        "tasks:{RAISE}
  - task: '*/fix/*'
    steps: [{steps}]
    fix: [{{match: fast, description: done}}]
"
    ))
}

#[test]
fn a_fix_that_destroys_the_document_is_not_landed() {
    for (steps, says) in [
        ("{write: {file: plan.md, text: oops}}", "it would leave 1"),
        ("{write: {file: plan.md, text: ''}}", "it would leave 0"),
        ("{delete: plan.md}", "it deleted plan.md"),
    ] {
        let sandbox = fixer(steps);
        let before = sandbox.read("plan.md");
        let ran = sandbox.run(&["review", "plan.md"]);
        assert_eq!(ran.code, Some(3), "{}", ran.err);
        assert!(ran.err.contains(says), "{}", ran.err);
        assert_eq!(sandbox.read("plan.md"), before);
    }
}

#[test]
fn the_text_from_before_the_run_is_kept() {
    let edit = "{edit: {file: plan.md, replace: It shall be fast., with: It answers in 200 ms.}}";
    let sandbox = fixer(edit);
    let before = sandbox.read("plan.md");
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(0));
    assert_ne!(sandbox.read("plan.md"), before);
    let kept = format!(".tribunal/originals/{}/plan.md", sandbox.last_run());
    assert_eq!(sandbox.read(&kept), before);
}

#[test]
fn line_ends_stay_as_they_were() {
    let sandbox =
        fixer("{write: {file: plan.md, text: \"# Plan\\n\\n## Goals\\n\\nIt answers in 200 ms.\\n\"}}");
    sandbox.write("plan.md", "# Plan\r\n\r\n## Goals\r\n\r\nIt shall be fast.\r\n");
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(sandbox.read("plan.md"), "# Plan\r\n\r\n## Goals\r\n\r\nIt answers in 200 ms.\r\n");

    let sandbox = fixer(
        "{write: {file: plan.md, text: \"# Plan\\r\\n\\r\\nIt answers in 200 ms.\\r\\n\\r\\n## Risks\\r\\n\"}}",
    );
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(sandbox.read("plan.md"), "# Plan\n\nIt answers in 200 ms.\n\n## Risks\n");
}

#[test]
fn a_fixer_that_writes_what_is_no_text_is_refused_and_not_the_environment_s_fault() {
    let sandbox = shell_agent("printf '# Plan\\n\\377\\n' > plan.md");
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("what it made of plan.md is no UTF-8"), "{}", ran.err);
}

/// A project whose agent is a shell script; the name of the task decides whether it reviews or fixes.
fn shell_agent(fixer: &str) -> Sandbox {
    let sandbox = Sandbox::scripted("tasks: []\n");
    let script = format!(
        "#!/bin/sh\ncat >/dev/null\ncase $TRIBUNAL_TASK in\n\
         */fix/*)\n{fixer}\necho '{{\"fixes\": [{{\"id\": \"F1\", \"status\": \"FIXED\"}}]}}';;\n\
         *) echo '{{\"findings\": [{{\"severity\": \"high\", \"description\": \"vague\", \"quote\": \"It shall be fast.\"}}]}}';;\nesac\n"
    );
    sandbox.write("agent.sh", &script);
    let agent = sandbox.path("agent.sh").display().to_string();
    sandbox.write(
        "tribunal.yaml",
        &format!("tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent}]}}}}\ntasks: {{required_issues: 0}}\n"),
    );
    sandbox
}

#[test]
fn an_agent_s_git_commands_do_not_reach_the_person_s_repository() {
    let sandbox = shell_agent(
        "git reset --hard -q; git stash -q; git rev-parse --show-toplevel; echo changed >> plan.md",
    );
    let git = |args: &[&str]| {
        let output =
            std::process::Command::new("git").args(args).current_dir(sandbox.root()).output().unwrap();
        assert!(output.status.success(), "git {args:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first"]);
    sandbox.write("other.txt", "uncommitted");
    sandbox.write("agent.sh.bak", "untracked");
    let plan = sandbox.read("plan.md");
    sandbox.write("plan.md", &format!("{plan}\nMy uncommitted line.\n"));
    let ran = sandbox.run(&["review", "plan.md"]);
    assert!(ran.code.is_some(), "{}", ran.err);
    assert_eq!(sandbox.read("other.txt"), "uncommitted");
    assert!(sandbox.read("plan.md").contains("My uncommitted line."));
    let stash = std::process::Command::new("git")
        .args(["stash", "list"])
        .current_dir(sandbox.root())
        .output()
        .unwrap();
    assert_eq!(stash.stdout, b"");
}

#[test]
fn a_reviewer_can_look_at_the_history_of_what_it_reads() {
    let sandbox = Sandbox::scripted("tasks: []\n");
    let spy = sandbox.path("../spy").display().to_string();
    let script = format!("(git log --format=%s; git diff --name-only) > {spy} 2>&1\necho 'findings: []'\n");
    sandbox.write("agent.sh", &script);
    let agent = sandbox.path("agent.sh").display().to_string();
    sandbox.write(
        "tribunal.yaml",
        &format!("tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent}]}}}}\n"),
    );
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first"],
    ] {
        let done = std::process::Command::new("git").args(args).current_dir(sandbox.root()).status().unwrap();
        assert!(done.success(), "git {args:?}");
    }
    sandbox.write("plan.md", &format!("{}\nMy uncommitted line.\n", sandbox.read("plan.md")));
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(sandbox.read("../spy"), "first\nplan.md\n");
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_is_told_the_folder_it_works_in() {
    let sandbox = Sandbox::scripted("tasks: []\n");
    let spy = sandbox.path("spy").display().to_string();
    let script = format!(
        "tr '\\0' '\\n' < /proc/$$/environ | grep PWD= > {spy}\npwd -P >> {spy}\necho 'findings: []'\n"
    );
    sandbox.write("agent.sh", &script);
    let agent = sandbox.path("agent.sh").display().to_string();
    sandbox.write(
        "tribunal.yaml",
        &format!("tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent}]}}}}\n"),
    );
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let spied = sandbox.read("spy");
    let (told, is) = spied.trim_end().split_once('\n').unwrap();
    assert_eq!(told, format!("PWD={is}"));
    assert!(is.ends_with("/tree"), "{is}");
}

#[test]
fn what_a_reviewer_writes_is_not_what_the_next_one_reads() {
    let sandbox = Sandbox::scripted("tasks: []\n");
    let spy = sandbox.path("spy").display().to_string();
    sandbox.write(
        "agent.sh",
        &format!("case $TRIBUNAL_TASK in */again) cp plan.md {spy};; *) echo vandalism > plan.md;; esac\necho 'findings: []'\n"),
    );
    let agent = sandbox.path("agent.sh").display().to_string();
    sandbox.write(
        "tribunal.yaml",
        &format!("tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent}]}}}}\n"),
    );
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(sandbox.read("spy"), sandbox.read("plan.md"));
}

#[test]
fn a_link_in_the_place_of_the_document_is_not_landed() {
    let sandbox = shell_agent("ln -sf /etc/passwd plan.md");
    let before = sandbox.read("plan.md");
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("it put something else in the place of plan.md"), "{}", ran.err);
    assert_eq!(sandbox.read("plan.md"), before);
}

#[test]
fn an_agent_that_reports_no_tokens_is_counted_all_the_same() {
    let sandbox = shell_agent("echo 'It answers in 200 ms.' > plan.md");
    let settings = sandbox.read("tribunal.yaml");
    sandbox.write("tribunal.yaml", &format!("{settings}limits: {{max_tokens: 100}}\n"));
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.err.contains("the token budget is used up"), "{}", ran.err);
}

#[test]
fn a_check_that_cannot_run_is_the_environment_s_fault() {
    let sandbox = shell_agent("sed -i 's/It shall be fast/It answers in 200 ms/' plan.md");
    let settings = sandbox.read("tribunal.yaml");
    sandbox.write("tribunal.yaml", &format!("{settings}verify: [surely-not-installed]\n"));
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("`surely-not-installed` cannot run"), "{}", ran.err);
}

#[test]
fn an_agent_that_only_repeats_its_prompt_has_reviewed_nothing() {
    let sandbox = Sandbox::scripted("tasks: []\n");
    sandbox.write("tribunal.yaml", "agents: {use: [cat], cat: {driver: command, argv: [cat]}}\n");
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
}

#[test]
fn a_secret_that_a_reviewer_quotes_is_found_where_it_stands() {
    let token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    let sandbox = Sandbox::scripted(&format!(
        "tasks:\n  - task: '*'\n    steps:\n      - text: |\n          findings:\n            - severity: critical\n              \
         description: a token\n              quote: {token}\n"
    ));
    sandbox.write("plan.md", &format!("# Plan\n\nThe token is {token} for now.\n"));
    let ran = sandbox.run(&["review", "plan.md", "--no-fix"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let findings = sandbox.json(&["findings"]);
    assert_eq!(findings["findings"][0]["status"], "open");
    assert_eq!(findings["findings"][0]["place"]["line"], 3);
    assert!(!findings.to_string().contains(&token));
}

#[test]
fn an_edit_of_the_person_s_during_the_run_is_kept() {
    // The verify command runs in a workspace. It edits the user's real file, as the user might do meanwhile.
    let sandbox = Sandbox::scripted(&format!(
        "tasks:{RAISE}
  - task: '*/fix/*'
    fix: [{{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}}]
"
    ));
    let real = sandbox.path("plan.md").display().to_string();
    let edit =
        format!("grep -q mine '{real}' || sed -i 's/None\\\\./None, says the person (mine)./' '{real}'");
    let settings = sandbox.read("tribunal.yaml");
    sandbox.write("tribunal.yaml", &format!("{settings}verify: [\"{edit}\"]\n"));
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let text = sandbox.read("plan.md");
    assert!(
        text.contains("It answers in 200 ms.") && text.contains("None, says the person (mine)."),
        "{text}"
    );
}

#[test]
fn secrets_never_reach_journal_tracker_or_screen() {
    let token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    let from_environment = "correct-horse-battery";
    let sandbox = Sandbox::scripted(&format!(
        "tasks:
  - task: '*/review/*'
    steps:
      - say: using {token}
      - findings:
          - {{severity: low, category: test, description: 'the token {token} and {from_environment} leak', quote: It shall be fast.}}
"
    ));
    let ran = crate::common::Ran::of(
        sandbox
            .command(&["review", "plan.md", "--no-fix"])
            .env("SAMPLE_API_TOKEN", from_environment)
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("[masked:github]") && ran.err.contains("[masked:env]"), "{}", ran.err);
    let tracker = sandbox.read(".tribunal/reviews/plan-issues.md");
    let journal = ["journal.db", "journal.db-wal"].map(|file| {
        let bytes = std::fs::read(sandbox.path(".tribunal").join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    for (place, text) in [("screen", &ran.err), ("tracker", &tracker), ("journal", &journal.concat())] {
        assert!(!text.contains(&token) && !text.contains(from_environment), "a secret reached the {place}");
    }
}

#[test]
fn a_second_run_on_a_busy_subject_is_refused_with_the_first_one_s_id() {
    let sandbox = Sandbox::scripted("tasks: [{task: '*', steps: [{hang: true}]}]\n");
    let mut first = sandbox.command(&["review", "plan.md", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    let run = started["run"].as_str().unwrap();

    let second = sandbox.run(&["review", "plan.md"]);
    let status = sandbox.run(&["status", run]);
    let resume = sandbox.run(&["resume", run]);
    first.kill().unwrap();
    first.wait().unwrap();

    assert_eq!(second.code, Some(2), "{}", second.err);
    insta::assert_snapshot!(sandbox.normal(&second.err), @r"
    [!] plan.md is already under review by run [run]
        Two runs on one subject would undo each other's work.
        1. watch the other one: tribunal status [run]
        2. or wait until it has ended
    ");
    assert!(status.out.contains("running"), "{}", status.out);
    assert_eq!(resume.code, Some(2), "{}", resume.err);
    assert!(resume.err.contains("is being worked on by another process"), "{}", resume.err);
    // After the kill the run counts as died and its subject can be reviewed again.
    assert!(sandbox.run(&["status", run]).out.contains("died"));
    sandbox.write("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    assert_eq!(sandbox.run(&["resume", run]).code, Some(0));
}

#[test]
fn an_answer_nobody_can_read_is_asked_for_once_more_and_then_given_up() {
    let sandbox = Sandbox::scripted("tasks: [{task: '*', steps: [{text: 'Looks good to me!'}]}]\n");
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("asked once more"), "{}", ran.err);
    assert!(ran.err.contains("the answer has no `findings` list"), "{}", ran.err);
}

#[test]
fn an_agent_that_never_ends_meets_its_deadline() {
    let sandbox = Sandbox::scripted("tasks: [{task: '*', steps: [{hang: true}]}]\n");
    let settings =
        sandbox.read("tribunal.yaml").replace("retry_after: 0", "retry_after: 0, reviewer_timeout: 1");
    sandbox.write("tribunal.yaml", &settings);
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("was not done after 1 s"), "{}", ran.err);
}

#[test]
fn the_agent_works_in_its_copy_and_is_told_its_task() {
    let sandbox = Sandbox::demo();
    let spy = sandbox.path("spy");
    let argv = format!(
        "[sh, -c, \"pwd >> {spy}; echo $TRIBUNAL_TASK $TRIBUNAL_RUN >> {spy}; exec {agent} {script}\"]",
        spy = spy.display(),
        agent = scripted_agent().display(),
        script = sandbox.path("demo/court.yaml").display()
    );
    sandbox
        .write("tribunal.yaml", &format!("agents: {{use: [spy], spy: {{driver: command, argv: {argv}}}}}\n"));
    assert_eq!(sandbox.run(&["review", PRD, "--no-fix", "--tier", "0"]).code, Some(3));
    let seen = sandbox.normal(&sandbox.read("spy"));
    assert_eq!(
        seen,
        "[project]/.tribunal/work/[run]/round-1.freeze/tree\nround-1/review/adversarial [run]\n"
    );
}

#[test]
fn a_check_that_takes_too_long_is_ended_and_the_patch_not_landed() {
    let sandbox = Sandbox::scripted(&format!(
        "tasks:{RAISE}
  - task: '*/fix/*'
    fix: [{{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}}]
"
    ));
    let text = sandbox.read("tribunal.yaml");
    sandbox.write("tribunal.yaml", &format!("{text}verify: [[sh, -c, 'echo started; sleep 1000']]\n"));
    assert_eq!(sandbox.run(&["trust", "--yes"]).code, Some(0));
    let ran = sandbox.run(&[
        "review",
        "plan.md",
        "--set",
        "tasks.check_timeout=1",
        "--set",
        "limits.max_fix_iterations=1",
    ]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.err.contains("not done after 1 s (tasks.check_timeout) started"), "{}", ran.err);
    assert!(sandbox.read("plan.md").contains("It shall be fast."));
}
