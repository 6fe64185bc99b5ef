//! Exports of findings: the format, the selected findings and the exit code. The contents of the formats are tested in the
//! crate that renders them.

use serde_json::Value;

use crate::common::Sandbox;

const TWO_FINDINGS_SCRIPT: &str = "tasks:
  - task: '*/review/*'
    steps:
      - findings:
          - {severity: high, category: clarity, description: 'fast is vague, @octocat', quote: It shall be fast.}
          - {severity: low, category: clarity, description: this was never written, quote: It shall be cheap.}
";

/// A reviewed project with one open and one dismissed finding.
fn reviewed_sandbox() -> Sandbox {
    let sandbox = Sandbox::with_script(TWO_FINDINGS_SCRIPT);
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]).exit_code, Some(3));
    sandbox
}

fn export_findings(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = sandbox.run_tribunal(&[&["findings"], args].concat());
    assert_eq!((output.exit_code, output.stderr.as_str()), (Some(0), ""), "{args:?}");
    output.stdout
}

#[test]
fn findings_are_exported_as_markdown() {
    let sandbox = reviewed_sandbox();
    let markdown_page = export_findings(&sandbox, &["--markdown"]);
    assert!(markdown_page.starts_with("# Review of plan.md\n\n- Run: <code>plan-"), "{markdown_page}");
    assert!(
        markdown_page.contains("\n- Outcome: **waiting**: findings are open, and fixing is off"),
        "{markdown_page}"
    );
    assert!(
        markdown_page.contains("\n### F1 · high · open\n")
            && markdown_page.contains("\n### F2 · low · dismissed (evidence not found)\n")
    );
    assert_eq!(export_findings(&sandbox, &["--markdown", &sandbox.last_run_id()]), markdown_page);
}

#[test]
fn findings_are_exported_as_a_pull_request_comment() {
    let comment = export_findings(&reviewed_sandbox(), &["--pr-comment"]);
    let (open_part, folded_part) = comment.split_once("<details>\n<summary>1 dismissed</summary>\n").unwrap();
    assert!(open_part.starts_with("**Tribunal: waiting**, "), "{comment}");
    assert!(open_part.contains("\n| F1 | high | open | fast is vague, @&#8203;octocat | line 5 |\n"), "{comment}");
    assert!(folded_part.contains("\n| F2 | low |") && folded_part.ends_with("\n</details>\n"), "{comment}");
}

#[test]
fn findings_are_exported_as_sarif() {
    let sarif_log: Value = serde_json::from_str(&export_findings(&reviewed_sandbox(), &["--sarif"])).unwrap();
    let sarif_run = &sarif_log["runs"][0];
    assert_eq!(sarif_run["tool"]["driver"]["name"], "tribunal");
    assert_eq!(sarif_run["tool"]["driver"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(sarif_run["results"][0]["message"]["text"], "fast is vague, @octocat");
    assert_eq!(sarif_run["results"][1]["suppressions"][0]["kind"], "external");
}

#[test]
fn every_format_can_be_filtered_by_status() {
    let sandbox = reviewed_sandbox();
    for (status, expected_ids) in [("open", &["F1"][..]), ("fixed", &[]), ("open,blocked,dismissed", &["F1", "F2"])] {
        let mut findings_document = sandbox.run_json(&["findings", "--status", status]);
        let found_ids =
            findings_document["findings"].as_array_mut().unwrap().iter().map(|finding| finding["id"].clone());
        assert_eq!(found_ids.collect::<Vec<_>>(), expected_ids, "{status}");
        let sarif_log: Value =
            serde_json::from_str(&export_findings(&sandbox, &["--sarif", "--status", status])).unwrap();
        let results = sarif_log["runs"][0]["results"].as_array().unwrap();
        let found_ids = results.iter().map(|result| result["properties"]["finding"].clone());
        assert_eq!(found_ids.collect::<Vec<_>>(), expected_ids, "{status}");
        for finding_id in ["F1", "F2"] {
            let is_expected = expected_ids.contains(&finding_id);
            let markdown_page = export_findings(&sandbox, &["--markdown", "--status", status]);
            assert_eq!(
                markdown_page.contains(&format!("\n### {finding_id} ")),
                is_expected,
                "{status}: {markdown_page}"
            );
            let comment = export_findings(&sandbox, &["--pr-comment", "--status", status]);
            assert_eq!(comment.contains(&format!("\n| {finding_id} |")), is_expected, "{status}: {comment}");
        }
    }
}

#[test]
fn two_formats_at_once_are_refused() {
    let sandbox = Sandbox::new();
    let format_flags = ["--markdown", "--pr-comment", "--sarif", "--junit", "--github", "--json"];
    for first_flag in format_flags {
        for second_flag in format_flags.into_iter().filter(|second_flag| *second_flag != first_flag) {
            assert_eq!(
                sandbox.run_tribunal(&["findings", first_flag, second_flag]).exit_code,
                Some(2),
                "{first_flag} {second_flag}"
            );
        }
    }
    insta::assert_snapshot!(sandbox.run_tribunal(&["findings", "--sarif", "--markdown"]).stderr, @"
    error: `--sarif` cannot be used with `--markdown`
      help: for more information, try `tribunal findings --help`
    ");
}
