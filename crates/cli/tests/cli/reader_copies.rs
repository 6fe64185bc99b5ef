//! Reviewers and challengers have a copy each: none sees what another one wrote.

use std::{fs, process::Command};

use crate::common::Sandbox;

const ORIGINAL_PLAN: &str = "# Plan\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone.\n";

/// A shell function that prints the working directory and everything that agents can read in it.
const LOOK_AROUND: &str =
    "look_around() { pwd; find . -name .git -prune -o -type f -print | sort; cat plan.md notes.md; }\n";
/// Writes a new file, changes a context file and changes the subject.
const WRITE_EVERYWHERE: &str = "echo secret >left-behind.txt; echo changed >notes.md; echo changed >plan.md";

/// A project with a context file, whose agent runs `script`. `$outside` is a directory outside of the project.
fn sandbox_with_agent(script: &str) -> Sandbox {
    let sandbox = Sandbox::with_shell_agent("");
    sandbox.write_file("notes.md", "context\n");
    sandbox.write_file("agent.sh", "");
    let outside = sandbox.root_dir().parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("agent.sh"), format!("cat >/dev/null\noutside={outside:?}\n{LOOK_AROUND}{script}")).unwrap();
    let settings = sandbox.read_file("tribunal.yaml").replace("tier: 0", "tier: 1");
    let agent_path = outside.join("agent.sh").display().to_string();
    sandbox.write_file(
        "tribunal.yaml",
        &settings.replace(&sandbox.path_of("agent.sh").display().to_string(), &agent_path),
    );
    fs::remove_file(sandbox.path_of("agent.sh")).unwrap();
    sandbox
}

fn read_outside(sandbox: &Sandbox, file_name: &str) -> String {
    let text = fs::read_to_string(sandbox.root_dir().parent().unwrap().join("outside").join(file_name)).unwrap();
    sandbox.normalize_output(&text)
}

/// What an agent sees that was started in the copy of this task and finds nothing of another agent.
fn untouched_view(task_directory: &str) -> String {
    format!(
        "[project]/.tribunal/work/[run]/{task_directory}/1/tree\n\
         ./notes.md\n./plan.md\n./script.yaml\n./tribunal.yaml\n{ORIGINAL_PLAN}context\n"
    )
}

#[test]
fn what_one_reader_writes_no_other_reader_of_the_round_sees() {
    let sandbox = sandbox_with_agent(&format!(
        "case $TRIBUNAL_TASK in\n\
         round-1/review/party) {WRITE_EVERYWHERE}; echo >$outside/reviewer-has-written; echo 'findings: []';;\n\
         round-1/review/adversarial) read line <$outside/reviewer-has-written; look_around >$outside/reviewer\n\
         echo '{{\"findings\": [{{\"severity\": \"high\", \"description\": \"vague\", \"quote\": \"It shall be fast.\"}}]}}';;\n\
         round-1/challenge/1/*) {WRITE_EVERYWHERE}; echo >$outside/challenger-has-written\n\
         echo '{{\"verdicts\": [{{\"id\": \"F1\", \"verdict\": \"VALID\"}}]}}';;\n\
         round-1/challenge/2/*) read line <$outside/challenger-has-written; look_around >$outside/challenger\n\
         echo '{{\"verdicts\": [{{\"id\": \"F1\", \"verdict\": \"VALID\"}}]}}';;\n\
         esac\n"
    ));
    for pipe_name in ["reviewer-has-written", "challenger-has-written"] {
        let pipe_path = sandbox.root_dir().parent().unwrap().join("outside").join(pipe_name);
        assert!(Command::new("mkfifo").arg(pipe_path).status().unwrap().success());
    }
    let output = sandbox.run_tribunal(&["review", "plan.md", "--level", "dual", "--no-fix"]);
    assert_eq!(output.exit_code, Some(3), "one finding stays open: {}", output.stderr);
    assert_eq!(read_outside(&sandbox, "reviewer"), untouched_view("round-1.review.adversarial"));
    assert_eq!(read_outside(&sandbox, "challenger"), untouched_view("round-1.challenge.2.1"));
    assert_eq!(sandbox.read_file("plan.md"), ORIGINAL_PLAN);
    assert!(!sandbox.path_of("left-behind.txt").exists());
}

#[test]
fn a_second_attempt_has_the_same_directory_and_nothing_of_the_first_one() {
    let sandbox = sandbox_with_agent(&format!(
        "case $TRIBUNAL_TASK in\n\
         */again) look_around >$outside/second; echo 'findings: []';;\n\
         *) pwd >$outside/first; {WRITE_EVERYWHERE}; echo 'this is no answer';;\n\
         esac\n"
    ));
    let output = sandbox.run_tribunal(&["review", "plan.md", "--level", "minimal", "--no-fix"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let second_view = read_outside(&sandbox, "second");
    assert_eq!(second_view, untouched_view("round-1.review.adversarial"));
    assert_eq!(second_view.lines().next(), read_outside(&sandbox, "first").lines().next());
}
