//! Exports of findings: the format, the selected findings and the exit code. The contents of the formats are tested in the
//! crate that renders them.

use serde_json::Value;

use crate::common::Sandbox;

const TWO: &str = "tasks:
  - task: '*/review/*'
    steps:
      - findings:
          - {severity: high, category: clarity, description: 'fast is vague, @octocat', quote: It shall be fast.}
          - {severity: low, category: clarity, description: nobody wrote this, quote: It shall be cheap.}
";

/// A reviewed project with one open and one dismissed finding.
fn reviewed() -> Sandbox {
    let sandbox = Sandbox::scripted(TWO);
    assert_eq!(sandbox.run(&["review", "plan.md", "--no-fix"]).code, Some(3));
    sandbox
}

fn said(sandbox: &Sandbox, args: &[&str]) -> String {
    let ran = sandbox.run(&[&["findings"], args].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
    ran.out
}

#[test]
fn findings_are_given_out_as_a_page() {
    let sandbox = reviewed();
    let page = said(&sandbox, &["--markdown"]);
    assert!(page.starts_with("# Review of plan.md\n\n- Run: <code>plan-"), "{page}");
    assert!(
        page.contains("\n- Outcome: **waiting**: findings are open and fixing was switched off"),
        "{page}"
    );
    assert!(
        page.contains("\n### F1 · high · open\n")
            && page.contains("\n### F2 · low · dismissed (ungrounded)\n")
    );
    assert_eq!(said(&sandbox, &["--markdown", &sandbox.last_run()]), page);
}

#[test]
fn findings_are_given_out_as_a_comment() {
    let comment = said(&reviewed(), &["--pr-comment"]);
    let (open, folded) = comment.split_once("<details>\n<summary>1 dismissed</summary>\n").unwrap();
    assert!(open.starts_with("**Tribunal: waiting**, "), "{comment}");
    assert!(open.contains("\n| F1 | high | open | fast is vague, @&#8203;octocat | line 5 |\n"), "{comment}");
    assert!(folded.contains("\n| F2 | low |") && folded.ends_with("\n</details>\n"), "{comment}");
}

#[test]
fn findings_are_given_out_as_sarif() {
    let log: Value = serde_json::from_str(&said(&reviewed(), &["--sarif"])).unwrap();
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "tribunal");
    assert_eq!(run["tool"]["driver"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["results"][0]["message"]["text"], "fast is vague, @octocat");
    assert_eq!(run["results"][1]["suppressions"][0]["kind"], "external");
}

#[test]
fn a_status_is_asked_for_in_every_form() {
    let sandbox = reviewed();
    for (status, ids) in [("open", &["F1"][..]), ("fixed", &[]), ("open,blocked,dismissed", &["F1", "F2"])] {
        let mut json = sandbox.json(&["findings", "--status", status]);
        let found = json["findings"].as_array_mut().unwrap().iter().map(|finding| finding["id"].clone());
        assert_eq!(found.collect::<Vec<_>>(), ids, "{status}");
        let log: Value = serde_json::from_str(&said(&sandbox, &["--sarif", "--status", status])).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap();
        let found = results.iter().map(|result| result["properties"]["finding"].clone());
        assert_eq!(found.collect::<Vec<_>>(), ids, "{status}");
        for id in ["F1", "F2"] {
            let wanted = ids.contains(&id);
            let page = said(&sandbox, &["--markdown", "--status", status]);
            assert_eq!(page.contains(&format!("\n### {id} ")), wanted, "{status}: {page}");
            let comment = said(&sandbox, &["--pr-comment", "--status", status]);
            assert_eq!(comment.contains(&format!("\n| {id} |")), wanted, "{status}: {comment}");
        }
    }
}

#[test]
fn two_forms_at_once_are_a_slip() {
    let sandbox = Sandbox::new();
    let forms = ["--markdown", "--pr-comment", "--sarif", "--json"];
    for first in forms {
        for second in forms.into_iter().filter(|second| *second != first) {
            assert_eq!(sandbox.run(&["findings", first, second]).code, Some(2), "{first} {second}");
        }
    }
    insta::assert_snapshot!(sandbox.run(&["findings", "--sarif", "--markdown"]).err, @r"
    [!] `--sarif` cannot be used together with `--markdown`
        1. see what can be typed: tribunal findings --help
    ");
}
