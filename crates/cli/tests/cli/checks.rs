//! Checks of the user with what follows from their failure: a warning, a refused patch, or a finding.

use crate::common::{CONFIRM_REPAIRS, CommandOutput, Sandbox};

/// The first fixer repairs the finding of the reviewer, and the second one what the check complains about.
fn sandbox_with_checks(checks_yaml: &str) -> Sandbox {
    let sandbox = Sandbox::with_shell_agent(&format!(
        "cat >/dev/null\ncase $TRIBUNAL_TASK in\n{CONFIRM_REPAIRS}\n\
         */fix-1/*) sed -i 's/It shall be fast/It answers in 200 ms/' plan.md; finding=F1;;\n\
         */fix-2/*) sed -i 's/in 200 ms/at once/' plan.md; finding=F2;;\n\
         *) echo '{{\"findings\": [{{\"severity\": \"high\", \"description\": \"vague\", \
         \"quote\": \"It shall be fast.\"}}]}}'; exit;;\nesac\n\
         echo \"{{\\\"fixes\\\": [{{\\\"id\\\": \\\"$finding\\\", \\\"status\\\": \\\"FIXED\\\"}}]}}\"\n"
    ));
    sandbox.append_setting(&format!("checks:\n{checks_yaml}"));
    sandbox
}

fn review(sandbox: &Sandbox) -> CommandOutput {
    sandbox.run_tribunal(&["review", "plan.md"])
}

#[test]
fn a_check_to_fix_becomes_a_finding_and_its_fixer_makes_it_pass() {
    let sandbox = sandbox_with_checks("  - {command: \"! grep -n 200 plan.md\", on_failure: fix}");
    let output = review(&sandbox);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(sandbox.read_file("plan.md").contains("It answers at once."), "{}", sandbox.read_file("plan.md"));
    assert!(output.stderr.contains("check `! grep -n 200 plan.md` failed with exit code 1"), "{}", output.stderr);
    assert!(output.stderr.contains("F2 fixed: `! grep -n 200 plan.md` passes now"), "{}", output.stderr);
    let findings = sandbox.run_json(&["findings", &sandbox.last_run_id()]);
    let check_finding = &findings["findings"][1];
    assert_eq!(check_finding["evidence"], "check", "{check_finding}");
    assert_eq!(check_finding["command"], "! grep -n 200 plan.md");
    assert_eq!(check_finding["output"], "5:It answers in 200 ms.\n");
    assert_eq!((&check_finding["status"], &check_finding["severity"]), (&"fixed".into(), &"high".into()));
    let tracker = sandbox.read_file(".tribunal/reviews/plan-issues.md");
    assert!(tracker.contains("- Check: `! grep -n 200 plan.md`\n- Output: 5:It answers in 200 ms.\n"), "{tracker}");
    assert!(tracker.contains("- Raised by: a check\n"), "{tracker}");
    for (format, expected_text) in [
        ("--sarif", "\"command\": \"! grep -n 200 plan.md\""),
        ("--junit", "check `! grep -n 200 plan.md`"),
        ("--markdown", "$ ! grep"),
    ] {
        let export = sandbox.run_tribunal(&["findings", &sandbox.last_run_id(), format]);
        assert!(export.stdout.contains(expected_text), "{format}: {}{}", export.stdout, export.stderr);
    }
    let table = sandbox.run_tribunal(&["findings", &sandbox.last_run_id()]);
    assert!(table.stdout.contains("output of ! grep -n 200 plan.md: 5:It answers in 200 ms."), "{}", table.stdout);
}

#[test]
fn a_check_that_warns_is_reported_and_the_patch_lands() {
    let sandbox = sandbox_with_checks("  - {run: [grep, -c, no such text, plan.md], on_failure: warn, timeout: 60}");
    let output = review(&sandbox);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(sandbox.read_file("plan.md").contains("It answers in 200 ms."));
    assert!(
        output.stderr.contains("check `grep -c 'no such text' plan.md` failed with exit code 1: 0"),
        "{}",
        output.stderr
    );
}

#[test]
fn the_words_of_a_list_are_not_read_by_a_shell() {
    // A shell would run the command in the last word and split the first argument.
    let sandbox = sandbox_with_checks("  - [test, \"a b; $(exit 1)\", =, \"a b; $(exit 1)\"]");
    let output = review(&sandbox);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(sandbox.read_file("plan.md").contains("It answers in 200 ms."));
}
