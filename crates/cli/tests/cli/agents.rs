//! Agents as processes: working ones, failing ones, and ones that write where they must not.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use crate::common::{CONFIRM_REPAIRS, PRD, Sandbox, scripted_agent_path};

#[test]
fn any_command_line_can_be_an_agent() {
    let sandbox = Sandbox::with_demo();
    let output = sandbox.run_tribunal(&["review", PRD]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("12 findings: 10 fixed, 2 dismissed"), "{}", output.stderr);
}

#[test]
fn an_agent_that_is_not_installed_is_refused_before_a_run_exists() {
    let sandbox = Sandbox::with_demo();
    sandbox
        .write_file("tribunal.yaml", "agents: {use: [mine], mine: {driver: command, argv: [surely-not-installed]}}\n");
    let output = sandbox.run_tribunal(&["review", PRD]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert_eq!(
        output.stderr,
        "error: agent `mine`: program `surely-not-installed` not found on PATH\n  Nothing was started.\n  \
         help: install `surely-not-installed`, or fix `agents.mine.argv`\n"
    );
    assert_eq!(sandbox.run_ids(), [""; 0]);
}

#[test]
fn a_run_resumes_after_a_failing_agent_was_repaired() {
    let failing_script = "tasks: [{task: '*', steps: [{complain: 'not signed in'}, {exit: 41}]}]\n";
    let sandbox = Sandbox::with_script(failing_script);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("agent `scripted` exited with code 41: not signed in"), "{}", output.stderr);
    assert!(output.stderr.contains("retrying"), "{}", output.stderr);
    sandbox.write_file("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("resolved"), "{}", output.stderr);
    assert_eq!(sandbox.run_ids().len(), 1);
}

#[test]
fn changed_settings_are_used_by_a_resume_only_with_reload() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let good_settings = sandbox.read_file("tribunal.yaml");
    let broken_settings =
        "tier: 0\ntasks: {retry_after: 0}\nagents: {use: [scripted], scripted: {driver: command, argv: [\"false\"]}}\n";
    sandbox.write_file("tribunal.yaml", broken_settings);
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(5));
    sandbox.write_file("tribunal.yaml", &good_settings);
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("(add --reload for changed settings)"), "{}", output.stderr);
    let output = sandbox.run_tribunal(&["resume", "--reload"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("settings reloaded"), "{}", output.stderr);
}

#[test]
fn a_reviewer_that_writes_does_not_change_files_of_the_user() {
    let sandbox = Sandbox::with_script(
        "tasks: [{task: '*', steps: [{write: {file: plan.md, text: vandalism}}, {write: {file: new.md, text: x}}, {findings: []}]}]\n",
    );
    let text_before = sandbox.read_file("plan.md");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(0));
    assert_eq!(sandbox.read_file("plan.md"), text_before);
    assert!(!sandbox.path_of("new.md").exists());
}

const RAISE_ONE_FINDING: &str = "
  - task: '*/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
";

#[test]
fn a_fixer_that_touches_other_files_is_not_landed() {
    let sandbox = Sandbox::with_script(&format!(
        "tasks:{RAISE_ONE_FINDING}
  - task: '*/fix/*'
    steps: [{{write: {{file: other.md, text: x}}}}]
    fix: [{{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}}]
"
    ));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("the fix also changed other.md"), "{}", output.stderr);
    assert!(sandbox.read_file("plan.md").contains("It shall be fast."));
    assert!(!sandbox.path_of("other.md").exists());
}

/// A project whose fixer performs these steps in its workspace before it claims FIXED.
fn sandbox_with_fixer(fixer_steps: &str) -> Sandbox {
    Sandbox::with_script(&format!(
        "tasks:{RAISE_ONE_FINDING}
  - task: '*/fix/*'
    steps: [{fixer_steps}]
    fix: [{{match: fast, description: done}}]
"
    ))
}

#[test]
fn a_fix_that_adds_a_secret_is_not_landed_and_only_its_kind_is_told() {
    let token = format!("gh{}_{}", "p", "x1".repeat(18));
    let sandbox = Sandbox::with_script(&format!(
        "tasks:{RAISE_ONE_FINDING}
  - task: '*/fix/*'
    fix: [{{match: fast, replace: It shall be fast., with: It answers with {token}., description: number}}]
"
    ));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("the fix adds a secret to plan.md (github)"), "{}", output.stderr);
    assert!(!output.stderr.contains(&token), "{}", output.stderr);
    assert!(sandbox.read_file("plan.md").contains("It shall be fast."));
}

#[test]
fn a_fix_that_inflates_the_document_is_not_landed() {
    let long_text = "It answers in 200 ms. ".repeat(300);
    let sandbox = Sandbox::with_script(&format!(
        "tasks:{RAISE_ONE_FINDING}
  - task: '*/fix/*'
    fix: [{{match: fast, replace: It shall be fast., with: '{long_text}', description: number}}]
"
    ));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(
        output.stderr.contains("bytes long; at most 4096 are allowed (`tasks.max_file_growth`"),
        "{}",
        output.stderr
    );
    assert!(sandbox.read_file("plan.md").contains("It shall be fast."));
    // The user can allow more.
    let output = sandbox.run_tribunal(&["review", "plan.md", "--set", "tasks.max_file_growth=1000"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(sandbox.read_file("plan.md").contains("200 ms. It answers"));
}

#[test]
fn findings_beyond_the_limit_are_counted_and_not_recorded() {
    use std::fmt::Write as _;
    let (mut document, mut findings) = (String::from("# Plan\n"), String::new());
    for number in 0..400 {
        let _ = writeln!(document, "\nThe part {number} shall be quick.");
        let severity = if number == 399 { "critical" } else { "low" };
        let _ = writeln!(
            findings,
            "      - {{severity: {severity}, category: test, description: 'part {number} is vague', \
             quote: 'The part {number} shall be quick.'}}"
        );
    }
    let script = format!("tasks:\n- task: '*/review/*'\n  steps:\n  - findings:\n{findings}");
    let sandbox = Sandbox::with_script(&script);
    sandbox.write_file("plan.md", &document);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("too many findings (400 of at most 50 findings"), "{}", output.stderr);
    assert!(output.stderr.contains("the 50 most severe were recorded, and 350 were only counted"), "{}", output.stderr);
    assert!(output.stderr.lines().count() < 100, "{}", output.stderr.lines().count());
    let recorded = sandbox.run_json(&["findings"]);
    let recorded = recorded["findings"].as_array().unwrap();
    assert_eq!(recorded.len(), 50);
    assert!(recorded.iter().any(|finding| finding["severity"] == "critical"), "the most severe one is kept");
}

#[test]
fn reviewers_do_not_see_the_password_of_the_database() {
    let sandbox = Sandbox::with_shell_agent("echo \"database: ${DATABASE_URL-hidden} proxy: ${HTTPS_PROXY-hidden}\"\n");
    let mut command = sandbox.tribunal_command(&["review", "plan.md"]);
    command.env("DATABASE_URL", "postgres://app:hunter2secret@db/app").env("HTTPS_PROXY", "http://proxy:3128");
    assert_eq!(command.output().unwrap().status.code(), Some(5));
    let transcript = sandbox.run_tribunal(&["inspect", "transcript", &sandbox.last_run_id(), "/"]).stdout;
    assert!(transcript.contains("database: hidden proxy: http://proxy:3128"), "{transcript}");
}

#[test]
fn copies_of_a_private_document_stay_private() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let sandbox = Sandbox::with_script(&format!(
        "tasks:{RAISE_ONE_FINDING}
  - task: '*/fix/*'
    fix: [{{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}}]
"
    ));
    fs::set_permissions(sandbox.path_of("plan.md"), fs::Permissions::from_mode(0o600)).unwrap();
    // A directory of an earlier version was open to others.
    fs::create_dir_all(sandbox.path_of(".tribunal")).unwrap();
    fs::set_permissions(sandbox.path_of(".tribunal"), fs::Permissions::from_mode(0o755)).unwrap();
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let mode_of = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode_of(&sandbox.path_of(".tribunal")), 0o700);
    assert_eq!(mode_of(&sandbox.path_of("plan.md")), 0o600);
    let run_dir = fs::read_dir(sandbox.path_of(".tribunal/originals")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(mode_of(&run_dir.join("plan.md")), 0o600);
}

#[test]
fn a_fix_that_destroys_the_document_is_not_landed() {
    for (steps, expected_message) in [
        ("{write: {file: plan.md, text: oops}}", "the fix would leave only 1 of "),
        ("{write: {file: plan.md, text: ''}}", "the fix would leave only 0 of "),
        ("{delete: plan.md}", "the fix deleted plan.md"),
    ] {
        let sandbox = sandbox_with_fixer(steps);
        let text_before = sandbox.read_file("plan.md");
        let output = sandbox.run_tribunal(&["review", "plan.md"]);
        assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
        assert!(output.stderr.contains(expected_message), "{}", output.stderr);
        assert_eq!(sandbox.read_file("plan.md"), text_before);
    }
}

#[test]
fn the_text_from_before_the_run_is_kept() {
    let edit_step = "{edit: {file: plan.md, replace: It shall be fast., with: It answers in 200 ms.}}";
    let sandbox = sandbox_with_fixer(edit_step);
    let text_before = sandbox.read_file("plan.md");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(0));
    assert_ne!(sandbox.read_file("plan.md"), text_before);
    let original_path = format!(".tribunal/originals/{}/plan.md", sandbox.last_run_id());
    assert_eq!(sandbox.read_file(&original_path), text_before);
}

#[test]
fn line_endings_stay_as_they_were() {
    let sandbox =
        sandbox_with_fixer("{write: {file: plan.md, text: \"# Plan\\n\\n## Goals\\n\\nIt answers in 200 ms.\\n\"}}");
    sandbox.write_file("plan.md", "# Plan\r\n\r\n## Goals\r\n\r\nIt shall be fast.\r\n");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(sandbox.read_file("plan.md"), "# Plan\r\n\r\n## Goals\r\n\r\nIt answers in 200 ms.\r\n");

    let sandbox = sandbox_with_fixer(
        "{write: {file: plan.md, text: \"# Plan\\r\\n\\r\\nIt answers in 200 ms.\\r\\n\\r\\n## Risks\\r\\n\"}}",
    );
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(sandbox.read_file("plan.md"), "# Plan\n\nIt answers in 200 ms.\n\n## Risks\n");
}

#[test]
fn a_fix_that_is_not_text_is_refused_and_is_not_an_environment_fault() {
    let sandbox = sandbox_with_shell_fixer("printf '# Plan\\n\\377\\n' > plan.md");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("plan.md is no longer valid UTF-8 after the fix"), "{}", output.stderr);
}

/// A project whose agent is a shell script; the name of the task decides whether it reviews or fixes.
fn sandbox_with_shell_fixer(fixer_commands: &str) -> Sandbox {
    let sandbox = Sandbox::with_script("tasks: []\n");
    let script = format!(
        "#!/bin/sh\ncat >/dev/null\ncase $TRIBUNAL_TASK in\n{CONFIRM_REPAIRS}\n\
         */fix/*)\n{fixer_commands}\necho '{{\"fixes\": [{{\"id\": \"F1\", \"status\": \"FIXED\"}}]}}';;\n\
         *) echo '{{\"findings\": [{{\"severity\": \"high\", \"description\": \"vague\", \"quote\": \"It shall be fast.\"}}]}}';;\nesac\n"
    );
    sandbox.write_file("agent.sh", &script);
    let agent_path = sandbox.path_of("agent.sh").display().to_string();
    sandbox.write_file(
        "tribunal.yaml",
        &format!("tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent_path}]}}}}\ntasks: {{required_issues: 0}}\n"),
    );
    sandbox
}

#[test]
fn git_commands_of_an_agent_do_not_reach_the_repository_of_the_user() {
    let sandbox = sandbox_with_shell_fixer(
        "git reset --hard -q; git stash -q; git rev-parse --show-toplevel; echo changed >> plan.md",
    );
    let run_git = |args: &[&str]| {
        let output = std::process::Command::new("git").args(args).current_dir(sandbox.root_dir()).output().unwrap();
        assert!(output.status.success(), "git {args:?}");
    };
    run_git(&["init", "-q"]);
    run_git(&["add", "-A"]);
    run_git(&["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first"]);
    sandbox.write_file("other.txt", "uncommitted");
    sandbox.write_file("agent.sh.bak", "untracked");
    let plan_text = sandbox.read_file("plan.md");
    sandbox.write_file("plan.md", &format!("{plan_text}\nMy uncommitted line.\n"));
    let command_output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert!(command_output.exit_code.is_some(), "{}", command_output.stderr);
    assert_eq!(sandbox.read_file("other.txt"), "uncommitted");
    assert!(sandbox.read_file("plan.md").contains("My uncommitted line."));
    let stash_list =
        std::process::Command::new("git").args(["stash", "list"]).current_dir(sandbox.root_dir()).output().unwrap();
    assert_eq!(stash_list.stdout, b"");
}

#[test]
fn a_reviewer_can_read_the_git_history() {
    let sandbox = Sandbox::with_script("tasks: []\n");
    let spy_path = sandbox.path_of("../spy").display().to_string();
    let script = format!("(git log --format=%s; git diff --name-only) > {spy_path} 2>&1\necho 'findings: []'\n");
    sandbox.write_file("agent.sh", &script);
    let agent_path = sandbox.path_of("agent.sh").display().to_string();
    sandbox.write_file(
        "tribunal.yaml",
        &format!("tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent_path}]}}}}\n"),
    );
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first"],
    ] {
        let git_status = std::process::Command::new("git").args(args).current_dir(sandbox.root_dir()).status().unwrap();
        assert!(git_status.success(), "git {args:?}");
    }
    sandbox.write_file("plan.md", &format!("{}\nMy uncommitted line.\n", sandbox.read_file("plan.md")));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(sandbox.read_file("../spy"), "first\nplan.md\n");
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_gets_its_working_directory_in_pwd() {
    let sandbox = Sandbox::with_script("tasks: []\n");
    let spy_path = sandbox.path_of("../spy").display().to_string();
    let script = format!(
        "tr '\\0' '\\n' < /proc/$$/environ | grep PWD= > {spy_path}\npwd -P >> {spy_path}\necho 'findings: []'\n"
    );
    sandbox.write_file("agent.sh", &script);
    let agent_path = sandbox.path_of("agent.sh").display().to_string();
    sandbox.write_file(
        "tribunal.yaml",
        &format!("tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent_path}]}}}}\n"),
    );
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let spy_output = sandbox.read_file("../spy");
    let (pwd_variable, real_directory) = spy_output.trim_end().split_once('\n').unwrap();
    assert_eq!(pwd_variable, format!("PWD={real_directory}"));
    assert!(real_directory.ends_with("/tree"), "{real_directory}");
}

#[test]
fn a_reviewer_does_not_read_what_an_earlier_one_wrote() {
    let sandbox = Sandbox::with_script("tasks: []\n");
    let spy_path = sandbox.path_of("../spy").display().to_string();
    sandbox.write_file(
        "agent.sh",
        &format!("case $TRIBUNAL_TASK in */again) cp plan.md {spy_path};; *) echo vandalism > plan.md;; esac\necho 'findings: []'\n"),
    );
    let agent_path = sandbox.path_of("agent.sh").display().to_string();
    sandbox.write_file(
        "tribunal.yaml",
        &format!("tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent_path}]}}}}\n"),
    );
    // Only a long text has findings that are required.
    sandbox.write_file("plan.md", &format!("# Plan\n\n{}", "One more line.\n".repeat(40)));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(sandbox.read_file("../spy"), sandbox.read_file("plan.md"));
}

#[test]
fn a_symlink_in_place_of_the_document_is_not_landed() {
    let sandbox = sandbox_with_shell_fixer("ln -sf /etc/passwd plan.md");
    let text_before = sandbox.read_file("plan.md");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(
        output.stderr.contains("the fix replaced plan.md with something that is not a regular file"),
        "{}",
        output.stderr
    );
    assert_eq!(sandbox.read_file("plan.md"), text_before);
}

#[test]
fn tokens_are_estimated_for_an_agent_that_reports_none() {
    let sandbox = sandbox_with_shell_fixer("echo 'It answers in 200 ms.' > plan.md");
    let settings = sandbox.read_file("tribunal.yaml");
    sandbox.write_file("tribunal.yaml", &format!("{settings}limits: {{max_tokens: 100}}\n"));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("token limit reached"), "{}", output.stderr);
}

#[test]
fn a_check_that_cannot_run_is_an_environment_fault() {
    let sandbox = sandbox_with_shell_fixer("sed -i 's/It shall be fast/It answers in 200 ms/' plan.md");
    let settings = sandbox.read_file("tribunal.yaml");
    sandbox
        .write_file("tribunal.yaml", &format!("{settings}verify: [cd . && surely-not-installed]\nbaseline: false\n"));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("could not run `cd . && surely-not-installed`"), "{}", output.stderr);
}

#[test]
fn an_agent_that_only_repeats_its_prompt_has_reviewed_nothing() {
    let sandbox = Sandbox::with_script("tasks: []\n");
    sandbox.write_file("tribunal.yaml", "agents: {use: [cat], cat: {driver: command, argv: [cat]}}\n");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
}

#[test]
fn a_quoted_secret_is_found_and_stays_masked() {
    let secret_token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    let sandbox = Sandbox::with_script(&format!(
        "tasks:\n  - task: '*'\n    steps:\n      - text: |\n          findings:\n            - severity: critical\n              \
         description: a token\n              quote: {secret_token}\n"
    ));
    sandbox.write_file("plan.md", &format!("# Plan\n\nThe token is {secret_token} for now.\n"));
    let output = sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    let findings = sandbox.run_json(&["findings"]);
    assert_eq!(findings["findings"][0]["status"], "open");
    assert_eq!(findings["findings"][0]["place"]["line"], 3);
    assert!(!findings.to_string().contains(&secret_token));
}

#[test]
fn an_edit_of_the_user_during_the_run_is_kept() {
    // The verify command runs in a workspace. It edits the user's real file, as the user might do meanwhile.
    let sandbox = Sandbox::with_script(&format!(
        "tasks:{RAISE_ONE_FINDING}
  - task: '*/fix/*'
    fix: [{{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}}]
"
    ));
    let real_path = sandbox.path_of("plan.md").display().to_string();
    let edit_command =
        format!("grep -q mine '{real_path}' || sed -i 's/None\\\\./None, says the person (mine)./' '{real_path}'");
    let settings = sandbox.read_file("tribunal.yaml");
    sandbox.write_file("tribunal.yaml", &format!("{settings}verify: [\"{edit_command}\"]\nbaseline: false\n"));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let plan_text = sandbox.read_file("plan.md");
    assert!(
        plan_text.contains("It answers in 200 ms.") && plan_text.contains("None, says the person (mine)."),
        "{plan_text}"
    );
}

#[test]
fn secrets_never_reach_journal_tracker_or_screen() {
    let secret_token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    let environment_secret = "correct-horse-battery";
    let sandbox = Sandbox::with_script(&format!(
        "tasks:
  - task: '*/review/*'
    steps:
      - say: using {secret_token}
      - findings:
          - severity: low
            category: test
            description: 'the token {secret_token} and {environment_secret} leak'
            quote: It shall be fast.
"
    ));
    let output = crate::common::CommandOutput::from_output(
        sandbox
            .tribunal_command(&["review", "plan.md", "--no-fix"])
            .env("SAMPLE_API_TOKEN", environment_secret)
            .output()
            .unwrap(),
    );
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("[masked:github]") && output.stderr.contains("[masked:env]"), "{}", output.stderr);
    let tracker = sandbox.read_file(".tribunal/reviews/plan-issues.md");
    let journal = ["journal.db", "journal.db-wal"].map(|file| {
        let bytes = std::fs::read(sandbox.path_of(".tribunal").join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    for (place, written_text) in [("screen", &output.stderr), ("tracker", &tracker), ("journal", &journal.concat())] {
        assert!(
            !written_text.contains(&secret_token) && !written_text.contains(environment_secret),
            "a secret reached the {place}"
        );
    }
}

#[test]
fn a_second_run_on_a_busy_subject_is_refused_with_the_id_of_the_first() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{hang: true}]}]\n");
    let mut first_run =
        sandbox.tribunal_command(&["review", "plan.md", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut event_line = String::new();
    BufReader::new(first_run.stdout.take().unwrap()).read_line(&mut event_line).unwrap();
    let started: serde_json::Value = serde_json::from_str(&event_line).unwrap();
    let run_id = started["run"].as_str().unwrap();

    let second_run = sandbox.run_tribunal(&["review", "plan.md"]);
    let status = sandbox.run_tribunal(&["status", run_id]);
    let resume = sandbox.run_tribunal(&["resume", run_id]);
    first_run.kill().unwrap();
    first_run.wait().unwrap();

    assert_eq!(second_run.exit_code, Some(2), "{}", second_run.stderr);
    insta::assert_snapshot!(sandbox.normalize_output(&second_run.stderr), @"
    error: plan.md is already being worked on by run [run]
      Two runs on the same subject would overwrite each other's work.
      1. check the other run: `tribunal status [run]`
      2. or wait until it has ended
    ");
    assert!(status.stdout.contains("running"), "{}", status.stdout);
    assert_eq!(resume.exit_code, Some(2), "{}", resume.stderr);
    assert!(resume.stderr.contains("is already running in another process"), "{}", resume.stderr);
    // After the kill the run counts as crashed and its subject can be reviewed again.
    assert!(sandbox.run_tribunal(&["status", run_id]).stdout.contains("crashed"));
    sandbox.write_file("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    assert_eq!(sandbox.run_tribunal(&["resume", run_id]).exit_code, Some(0));
}

#[test]
fn an_unreadable_answer_is_asked_for_once_more_and_then_given_up() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{text: 'Looks good to me!'}]}]\n");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("asking again"), "{}", output.stderr);
    assert!(output.stderr.contains("the answer has no `findings` list"), "{}", output.stderr);
}

#[test]
fn an_agent_that_never_ends_times_out() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{hang: true}]}]\n");
    let settings = sandbox.read_file("tribunal.yaml").replace("retry_after: 0", "retry_after: 0, reviewer_timeout: 1");
    sandbox.write_file("tribunal.yaml", &settings);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("timed out after 1 s"), "{}", output.stderr);
}

#[test]
fn the_agent_works_in_its_workspace_and_gets_its_task_name() {
    let sandbox = Sandbox::with_demo();
    let spy_path = sandbox.path_of("spy");
    let argv = format!(
        "[sh, -c, \"pwd >> {spy_path}; echo $TRIBUNAL_TASK $TRIBUNAL_RUN >> {spy_path}; exec {agent} {script}\"]",
        spy_path = spy_path.display(),
        agent = scripted_agent_path().display(),
        script = sandbox.path_of("demo/court.yaml").display()
    );
    sandbox.write_file("tribunal.yaml", &format!("agents: {{use: [spy], spy: {{driver: command, argv: {argv}}}}}\n"));
    assert_eq!(sandbox.run_tribunal(&["review", PRD, "--no-fix", "--tier", "0"]).exit_code, Some(3));
    let seen_text = sandbox.normalize_output(&sandbox.read_file("spy"));
    assert_eq!(
        seen_text,
        "[project]/.tribunal/work/[run]/round-1.review.adversarial/1/tree\nround-1/review/adversarial [run]\n"
    );
}

#[test]
fn a_check_that_takes_too_long_is_ended_and_the_patch_not_landed() {
    let sandbox = Sandbox::with_script(&format!(
        "tasks:{RAISE_ONE_FINDING}
  - task: '*/fix/*'
    fix: [{{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}}]
"
    ));
    let settings_text = sandbox.read_file("tribunal.yaml");
    sandbox.write_file(
        "tribunal.yaml",
        &format!("{settings_text}verify: [[sh, -c, 'echo started; sleep 1000']]\nbaseline: false\n"),
    );
    assert_eq!(sandbox.run_tribunal(&["trust", "--yes"]).exit_code, Some(0));
    let shows_output_after = |seconds: u32| {
        let time_limit = format!("tasks.check_timeout={seconds}");
        let output =
            sandbox.run_tribunal(&["review", "plan.md", "--set", &time_limit, "--set", "limits.max_fix_iterations=1"]);
        assert_eq!(output.exit_code, Some(4), "{}", output.stderr);
        assert!(sandbox.read_file("plan.md").contains("It shall be fast."));
        let message = format!("timed out after {seconds} s (`tasks.check_timeout`)");
        assert!(output.stderr.contains(&message), "{}", output.stderr);
        output.stderr.contains(&format!("{message} started"))
    };
    // On a busy machine the check may not get to print its line in time; then it gets more time.
    assert!([1, 4, 16, 64].into_iter().any(shows_output_after));
}
