//! Tribunal in CI: the exit code by severity, and the jobs of `docs/ci.md` as a runner would execute them.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::common::{CommandOutput, Sandbox, TRIBUNAL, write_program};

/// A script whose reviewers raise one finding of this severity.
fn script_with(severity: &str) -> String {
    format!(
        "tasks:\n  - task: '*/review/*'\n    steps:\n      - findings:\n          \
         - {{severity: {severity}, category: clarity, description: fast is vague, quote: It shall be fast.}}\n"
    )
}

#[test]
fn findings_of_the_threshold_or_above_fail_a_review() {
    for (severity, threshold, expected_code) in [
        ("critical", "high", 3),
        ("high", "high", 3),
        ("medium", "high", 0),
        ("low", "high", 0),
        ("low", "low", 3),
        ("high", "critical", 0),
    ] {
        let sandbox = Sandbox::with_script(&script_with(severity));
        let output = sandbox.run_tribunal(&["review", "plan.md", "--no-fix", "--fail-on", threshold]);
        assert_eq!(output.exit_code, Some(expected_code), "{severity} {threshold}: {}", output.stderr);
        let last_line = output.stderr.lines().last().unwrap();
        let run_id = sandbox.last_run_id();
        let expected_line = match expected_code {
            3 => format!(
                "error: run {run_id} leaves 1 finding of severity {threshold} or higher (--fail-on {threshold})"
            ),
            _ => format!("note: run {run_id} leaves no finding of severity {threshold}"),
        };
        assert!(last_line.starts_with(&expected_line), "{last_line}");
        // The threshold changes the exit code and not the run.
        assert_eq!(sandbox.run_json(&["status"])["runs"][0]["state"], "waiting");
    }
}

#[test]
fn the_threshold_can_be_a_setting_and_a_flag_wins() {
    let sandbox = Sandbox::with_script(&script_with("medium"));
    sandbox.append_setting("fail_on: medium");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]).exit_code, Some(3));
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md", "--no-fix", "--fail-on", "high"]).exit_code, Some(0));
    sandbox.append_setting("verify: []");
    let output = sandbox.run_tribunal(&["review", "plan.md", "--set", "fail_on=severe"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("fail_on") && output.stderr.contains("critical"), "{}", output.stderr);
}

#[test]
fn a_detached_run_has_no_exit_code_to_choose() {
    let output = Sandbox::with_script("").run_tribunal(&["review", "plan.md", "--detach", "--fail-on", "high"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
}

#[test]
fn the_worst_of_several_runs_decides() {
    let sandbox = Sandbox::with_shell_agent(
        "if grep -q terrible; then s=critical; q='It is terrible.'; else s=low; q='It shall be fast.'; fi\n\
         echo \"findings: [{severity: $s, category: c, description: d, quote: $q}]\"\n",
    );
    sandbox.write_file("worse.md", "# Worse\n\nIt is terrible.\n");
    let output = sandbox.run_tribunal(&["review", "plan.md", "worse.md", "--no-fix", "--fail-on", "high"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    let verdict_lines: Vec<&str> = output.stderr.lines().filter(|line| line.contains("(--fail-on high)")).collect();
    assert_eq!(verdict_lines.len(), 2, "{}", output.stderr);
    assert!(verdict_lines[0].starts_with("note: run plan-") && verdict_lines[1].starts_with("error: run worse-"));
    sandbox.write_file("worse.md", "# Worse\n\nIt shall be fast.\n");
    let output = sandbox.run_tribunal(&["review", "plan.md", "worse.md", "--no-fix", "--fail-on", "high"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
}

#[test]
fn limits_faults_and_open_questions_keep_their_exit_codes() {
    let failing_agent = Sandbox::with_shell_agent("exit 1\n");
    assert_eq!(failing_agent.run_tribunal(&["review", "plan.md", "--fail-on", "critical"]).exit_code, Some(5));
    for (threshold, resumed_code) in [("medium", 3), ("high", 0)] {
        // A fixer that gives up leaves a question; its severity does not matter.
        let waiting = Sandbox::with_shell_agent(
            "case $TRIBUNAL_TASK in\n\
             */fix/*) echo 'fixes: [{id: F1, status: BLOCKED, fix_description: no}]';;\n\
             *) echo 'findings: [{severity: medium, description: vague, quote: It shall be fast.}]';;\n\
             esac\n",
        );
        let output = waiting.run_tribunal(&["review", "plan.md", "--fail-on", "critical"]);
        assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
        assert!(!output.stderr.contains("(--fail-on"), "{}", output.stderr);
        // After the answer the run is resolved, but what was deferred is still there.
        assert_eq!(waiting.run_tribunal(&["decisions", "D1", "defer"]).exit_code, Some(0));
        let output = waiting.run_tribunal(&["resume", "--fail-on", threshold]);
        assert_eq!(output.exit_code, Some(resumed_code), "{}", output.stderr);
        assert!(output.stderr.contains(&format!("(--fail-on {threshold})")), "{}", output.stderr);
        assert_eq!(waiting.run_json(&["status"])["runs"][0]["state"], "resolved");
    }
}

#[test]
fn ids_of_runs_are_listed_for_scripts() {
    let sandbox = Sandbox::with_script(&script_with("low"));
    assert_eq!(sandbox.run_tribunal(&["runs", "--ids"]).stdout, "");
    sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    let listed_ids = sandbox.run_tribunal(&["runs", "--ids"]).stdout;
    assert_eq!(listed_ids.lines().collect::<Vec<_>>(), sandbox.run_ids());
}

#[test]
fn annotations_are_printed_for_what_is_unresolved() {
    let script = script_with("high")
        + "          - {severity: low, category: c, description: never written, quote: It shall be cheap.}\n";
    let sandbox = Sandbox::with_script(&script);
    sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    let annotations = sandbox.run_tribunal(&["findings", "--github"]).stdout;
    assert_eq!(annotations, "::error file=plan.md,line=5,title=Tribunal F1%3A high%2C clarity::fast is vague\n");
    let all_annotations = sandbox.run_tribunal(&["findings", "--github", "--status", "open,dismissed"]).stdout;
    assert_eq!(all_annotations.lines().count(), 2, "{all_annotations}");
    let junit_report = sandbox.run_tribunal(&["findings", "--junit"]).stdout;
    assert!(junit_report.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{junit_report}");
    assert_eq!(sandbox.run_tribunal(&["findings", "--junit", "--github"]).exit_code, Some(2));
    assert_eq!(sandbox.run_tribunal(&["findings", "--junit", "--json"]).exit_code, Some(2));
}

/// The page with the jobs.
const CI_PAGE: &str = include_str!("../../../../docs/ci.md");

/// The YAML block below a heading of the page.
fn job_below(heading: &str) -> &'static str {
    let section = CI_PAGE.split_once(&format!("\n## {heading}\n")).unwrap().1;
    section.split_once("```yaml\n").unwrap().1.split_once("\n```").unwrap().0
}

/// The texts of all `run: |` steps of a GitHub workflow, by the names of their steps.
fn workflow_steps() -> Vec<(&'static str, String)> {
    let mut steps = Vec::new();
    let mut step_name = "";
    let mut lines = job_below("GitHub Actions").lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(name) = line.trim_start().strip_prefix("- name: ") {
            step_name = name;
        }
        if line.trim() == "run: |" {
            let indent = line.len() - line.trim_start().len() + 2;
            let mut step_text = String::new();
            while let Some(step_line) = lines.next_if(|next| next.len() >= indent && next[..indent].trim().is_empty()) {
                step_text += &format!("{}\n", &step_line[indent..]);
            }
            steps.push((step_name, step_text));
        }
    }
    steps
}

/// The lines of a list of commands in the GitLab job.
fn job_commands(key: &str) -> Vec<&'static str> {
    let after_key = job_below("GitLab CI").split_once(&format!("\n  {key}:\n")).unwrap().1;
    after_key.lines().map_while(|line| line.strip_prefix("    - ")).collect()
}

/// A checked-out branch with one commit more than `origin/main`, whose reviewers raise a finding of this severity.
struct CiRepository {
    sandbox: Sandbox,
    program_dir: PathBuf,
}

impl CiRepository {
    fn new(severity: &str) -> CiRepository {
        let sandbox = Sandbox::new().without_trust();
        let program_dir = sandbox.path_of("../bin");
        fs::create_dir_all(&program_dir).unwrap();
        symlink(TRIBUNAL, program_dir.join("tribunal")).unwrap();
        write_program(&program_dir.join("claude"), "#!/bin/sh\nexit 1\n");
        let agent_path = sandbox.path_of("../agent.sh");
        write_program(
            &agent_path,
            &format!(
                "#!/bin/sh\ncat >/dev/null\necho 'findings:\n\
                 - {{severity: {severity}, category: money, description: \"cents are lost: 1, 2\", quote: \"int(total)\"}}'\n"
            ),
        );
        // The runner's own settings need no trust; the project has none.
        sandbox.write_file(
            "../home/config/tribunal/settings.yaml",
            &format!(
                "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [{agent_path:?}]}}}}\n\
                 tasks: {{retry_after: 0, required_issues: 0}}\n"
            ),
        );
        sandbox.write_file("src/pay.py", "def pay(total):\n    return total\n");
        let repository = CiRepository { sandbox, program_dir };
        repository.run_shell(
            "git init -q -b main && git add -A && git commit -q -m base && git clone -q --bare . ../origin.git \
             && git remote add origin ../origin.git && git fetch -q && git checkout -q -b feature",
            0,
        );
        repository.sandbox.write_file("src/pay.py", "def pay(total):\n    return int(total)\n");
        repository.run_shell("git commit -q -a -m change", 0);
        repository
    }

    /// Runs a step as GitHub does, and checks its exit code.
    fn run_shell(&self, step_text: &str, expected_code: i32) -> CommandOutput {
        let search_path = format!("{}:{}", self.program_dir.display(), std::env::var("PATH").unwrap());
        let mut command: Command = self.sandbox.isolated_command("bash");
        command.args(["-e", "-o", "pipefail", "-c", step_text]).env("PATH", search_path);
        command.env("GITHUB_STEP_SUMMARY", self.summary_path());
        for (variable, value) in [
            ("GIT_AUTHOR_NAME", "n"),
            ("GIT_AUTHOR_EMAIL", "e@e"),
            ("GIT_COMMITTER_NAME", "n"),
            ("GIT_COMMITTER_EMAIL", "e@e"),
        ] {
            command.env(variable, value);
        }
        let output = CommandOutput::from_output(command.output().unwrap());
        assert_eq!(output.exit_code, Some(expected_code), "{step_text}\n{}{}", output.stdout, output.stderr);
        output
    }

    fn summary_path(&self) -> PathBuf {
        self.sandbox.path_of("../summary.md")
    }

    /// The reports that were written, with this ending.
    fn read_reports(&self, extension: &str) -> Vec<String> {
        let report_files = fs::read_dir(self.sandbox.path_of("tribunal-report")).unwrap().flatten();
        let report_paths = report_files.map(|dir_entry| dir_entry.path());
        let has_extension = |path: &PathBuf| Path::extension(path).is_some_and(|found| found == extension);
        report_paths.filter(has_extension).map(|path| fs::read_to_string(path).unwrap()).collect()
    }
}

#[test]
fn the_github_workflow_of_the_documentation_works() {
    for (severity, review_code, annotation) in [("high", 3, "::error "), ("low", 0, "::notice ")] {
        let repository = CiRepository::new(severity);
        let steps = workflow_steps();
        assert_eq!(steps.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["Install", "Review", "Export"]);
        repository.run_shell(&steps[0].1, 0);
        let review_output = repository.run_shell(&steps[1].1, review_code);
        assert!(review_output.stderr.contains("(--fail-on high)"), "{}", review_output.stderr);
        let export_output = repository.run_shell(&steps[2].1, 0);
        assert_eq!(
            export_output.stdout,
            format!(
                "{annotation}file=src/pay.py,line=2,title=Tribunal F1%3A {severity}%2C money::cents are lost: 1, 2\n"
            )
        );
        let sarif_reports = repository.read_reports("sarif");
        assert_eq!(sarif_reports.len(), 1);
        let sarif_log: Value = serde_json::from_str(&sarif_reports[0]).unwrap();
        assert_eq!(sarif_log["runs"][0]["results"][0]["message"]["text"], "cents are lost: 1, 2");
        let summary = fs::read_to_string(repository.summary_path()).unwrap();
        assert!(summary.contains("cents are lost: 1, 2"), "{summary}");
        // The work tree has nothing new that git would commit, besides the reports.
        assert_eq!(repository.run_shell("git status --short", 0).stdout, "?? tribunal-report/\n");
    }
}

#[test]
fn the_gitlab_job_of_the_documentation_works() {
    for (severity, review_code) in [("critical", 3), ("medium", 0)] {
        let repository = CiRepository::new(severity);
        repository.run_shell(&job_commands("script").join("\n"), review_code);
        repository.run_shell(&job_commands("after_script").join("\n"), 0);
        let junit_reports = repository.read_reports("xml");
        assert_eq!(junit_reports.len(), 1);
        assert!(junit_reports[0].contains(&format!("<failure type=\"{severity}\"")), "{}", junit_reports[0]);
        assert!(junit_reports[0].contains("file=\"src/pay.py\" line=\"2\""), "{}", junit_reports[0]);
    }
}

#[test]
fn a_change_with_nothing_to_review_passes() {
    let repository = CiRepository::new("high");
    repository.run_shell("git checkout -q main", 0);
    let steps = workflow_steps();
    repository.run_shell(&steps[1].1, 0);
    assert_eq!(repository.run_shell(&steps[2].1, 0).stdout, "");
    assert_eq!(repository.read_reports("sarif"), Vec::<String>::new());
}
