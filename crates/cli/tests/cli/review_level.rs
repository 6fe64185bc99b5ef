//! The level of a review follows from the tier and the confidence of the last review of the same subject; what reviewers are
//! told about the project.

use crate::common::Sandbox;

/// No reviewer ever finds anything.
const CONTENT_SCRIPT: &str = "tasks: [{task: '*', steps: [{findings: []}]}]\n";
const THRESHOLDS: &str = "review_loop: {confidence_thresholds: {minimal: 40, dual: 20}}";

fn tier_2_sandbox() -> Sandbox {
    let sandbox = Sandbox::with_script(CONTENT_SCRIPT);
    sandbox.write_file("tribunal.yaml", &sandbox.read_file("tribunal.yaml").replace("tier: 0", "tier: 2"));
    sandbox
}

fn panel_line(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.run_tribunal(arguments);
    let panel_line = output.stderr.lines().find(|line| line.starts_with("panel: "));
    sandbox.normalize_output(panel_line.unwrap_or_else(|| panic!("{}", output.stderr)))
}

#[test]
fn the_second_review_is_as_thorough_as_the_first_one_was_unsure() {
    let sandbox = tier_2_sandbox();
    sandbox.append_setting(THRESHOLDS);
    let review = ["review", "plan.md", "--no-fix"];
    assert_eq!(
        panel_line(&sandbox, &review),
        "panel: party, adversarial, elicitation (full: tier 2, not reviewed before)"
    );
    let first_run = sandbox.last_run_id();
    let plan = sandbox.run_tribunal(&["review", "plan.md", "--dry-run"]).stdout;
    assert!(plan.contains(&format!("level:    minimal (tier 2, confidence 50 in {first_run})")), "{plan}");
    let output = sandbox.run_tribunal(&review);
    let expected_line = format!("panel: adversarial (minimal: tier 2, confidence 50 in {first_run})");
    assert!(output.stderr.contains(&expected_line), "{}", output.stderr);
    // One reviewer alone is one source, which is worth less.
    let third = sandbox.run_tribunal(&[
        "review",
        "plan.md",
        "--no-fix",
        "--set",
        "level_policy=floor",
        "--set",
        "review_loop.tier_minimums.2=full",
    ]);
    assert!(third.stderr.contains("confidence 20 in ") && third.stderr.contains("at least full"), "{}", third.stderr);
    // The record is about this subject alone, and the user's word wins over it.
    sandbox.write_file("other.md", "# Other\n");
    assert!(panel_line(&sandbox, &["review", "other.md", "--no-fix"]).ends_with("not reviewed before)"));
    let chosen = panel_line(&sandbox, &["review", "plan.md", "--no-fix", "--level", "dual"]);
    assert_eq!(chosen, "panel: party, adversarial (dual: chosen by you)");
}

#[test]
fn confidence_counts_only_for_the_text_that_was_reviewed() {
    let sandbox = tier_2_sandbox();
    sandbox.append_setting(THRESHOLDS);
    let review = ["review", "plan.md", "--no-fix"];
    sandbox.run_tribunal(&review);
    let first_run = sandbox.last_run_id();
    sandbox.write_file("plan.md", "# Another plan\n\nNothing of the first one is left.\n");
    let changed_reason = format!("tier 2, changed since it was reviewed in {first_run}");
    let plan = sandbox.run_tribunal(&["review", "plan.md", "--dry-run"]).stdout;
    assert!(plan.contains(&format!("level:    full ({changed_reason})")), "{plan}");
    let output = sandbox.run_tribunal(&review);
    assert!(output.stderr.contains(&format!("(full: {changed_reason})")), "{}", output.stderr);
    let second_run = sandbox.last_run_id();
    let output = sandbox.run_tribunal(&review);
    assert!(output.stderr.contains(&format!("(minimal: tier 2, confidence 50 in {second_run})")), "{}", output.stderr);
}

#[test]
fn a_review_does_not_start_where_the_settings_forbid_it() {
    let sandbox = tier_2_sandbox();
    sandbox.append_setting("review_loop: {enabled: false}");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.contains("`review_loop.enabled` is false, so nothing is reviewed"), "{}", output.stderr);
    let output = sandbox.run_tribunal(&["review", "plan.md", "--no-fix", "--set", "review_loop.enabled=true"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
}

#[test]
fn thresholds_in_the_wrong_order_are_refused() {
    let sandbox = tier_2_sandbox();
    sandbox.append_setting("review_loop: {confidence_thresholds: {dual: 99}}");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(
        output.stderr.contains("a minimal panel needs a confidence above 98, but a dual panel one from 99"),
        "{}",
        output.stderr
    );
}

#[test]
fn reviewers_are_told_the_language_of_the_documents_that_bmad_is_set_to() {
    let sandbox = tier_2_sandbox();
    sandbox.write_file("_bmad/bmm/config.yaml", "document_output_language: French\n");
    let output = sandbox.run_tribunal(&["review", "plan.md", "--no-fix", "--level", "minimal"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let prompts = sandbox.run_tribunal(&["log", "--prompts", "--key", "review/adversarial"]).stdout;
    assert!(prompts.contains("The project writes its documents in French"), "{prompts}");
}
