//! Untrusted text in every field: a page and a comment keep their structure, and a SARIF log stays valid.
//!
//! A Markdown parser with the extensions of forges judges the result: the tree of a hostile page must equal that of a harmless
//! one, and the hostile text must be found in it as text.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use comrak::{
    Arena, Options,
    nodes::{Node, NodeValue},
    parse_document,
};
use proptest::prelude::*;
use tribunal_core::{
    event::{Entry, Event},
    finding::{Evidence, Finding, Status},
    ids::{AgentName, DecisionId, RunId},
    subject::Subject,
    view::RunView,
};
use tribunal_report::{Export, Rulings, clean, tables::Standing};
use tribunal_testkit::{SAMPLE_JOURNAL, challenged, entries};

const HOSTILE: &[&str] = &[
    "`",
    "```\n",
    "~~~",
    "|",
    "\\",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\t",
    " ",
    "    ",
    "\n# ",
    "# ",
    "- ",
    "+ ",
    "* ",
    "1. ",
    ": ",
    "12) ",
    "---",
    "===",
    "\n---\n",
    "> ",
    "[!NOTE]",
    "[ ] ",
    "[x](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "[x][y]",
    "\n[y]: https://evil.example",
    "[^1]",
    "<img src=https://evil.example>",
    "<https://evil.example>",
    "<a@evil.example>",
    "https://evil.example",
    "ftp://evil.example",
    "www.evil.example",
    "WwW.evil.example",
    "me@evil.example",
    "mailto:me@evil.example",
    "@octocat",
    "@org/team",
    "#12",
    "org/repo#1",
    "GH-1",
    "gh-1",
    "<!--",
    "-->",
    "</details>",
    "<details>",
    "</summary>",
    "</code>",
    "<code>",
    "<script>",
    "<?",
    "<![CDATA[",
    "&lt;",
    "&#64;octocat",
    "&amp;",
    "*",
    "**",
    "_",
    "__",
    "~~",
    "$x$",
    "$$",
    "$`x`$",
    ":smile:",
    "[[wiki]]",
    "\x1b[2J",
    "\u{202e}",
    "\u{200b}",
    "\u{2028}",
    "\u{0}",
    "\u{85}",
    "\u{301}",
    "{0}",
    "\"",
    "\\\"",
    "\\u0041",
    "審査",
    "🦀",
];

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => prop::sample::select(HOSTILE).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
        1 => "[ -~]{1,5}",
    ];
    // The last letter ensures that something is left of the text after it is cleaned.
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat() + "z")
}

/// The journal with the text in every place where an agent, a document or a name may have put it.
fn told(mut journal: Vec<Entry>, text: &str) -> Vec<Entry> {
    for entry in &mut journal {
        entry.run = RunId::new(text);
        match &mut entry.event {
            Event::RunStarted { settings, .. } => {
                settings.subject = Subject::Document { path: text.into(), section: Some(text.into()) };
            }
            Event::FindingRaised { finding } => tell(finding, text),
            Event::FindingJoined { raiser, .. } => raiser.agent = AgentName::new(text),
            Event::FindingRuled { voices, .. } => {
                for (index, voice) in voices.iter_mut().enumerate() {
                    voice.agent = AgentName::new(format!("{text}{index}"));
                    (voice.note, voice.counter) = (text.into(), text.into());
                }
            }
            Event::FindingMoved { transition, .. } => {
                transition.note = text.into();
                if let Status::Blocked { decision } = &mut transition.to {
                    *decision = DecisionId::new(text);
                }
            }
            Event::RunFinished(summary) => summary.detail = text.into(),
            _ => {}
        }
    }
    journal
}

fn tell(finding: &mut Finding, text: &str) {
    finding.category = text.into();
    finding.description = text.into();
    finding.suggested_fix = text.into();
    finding.raisers.iter_mut().for_each(|raiser| raiser.agent = AgentName::new(text));
    finding.history.iter_mut().for_each(|step| step.note = text.into());
    if let Some(place) = &mut finding.place {
        // In the comment a place names its file only if that is not the file under review.
        place.file = if finding.id.0.is_multiple_of(2) { text.into() } else { format!("{text}/b") };
        place.section = text.into();
    }
    match &mut finding.evidence {
        Evidence::Quote { text: quote } => *quote = text.into(),
        Evidence::Absence { heading, terms } => {
            (*heading, *terms) = (text.into(), vec![text.into(), text.into()])
        }
    }
}

fn given(journal: &[Entry], give: fn(&Export<'_>) -> String) -> String {
    let (view, rulings) = (RunView::of(journal), Rulings::of(journal));
    let findings = view.findings.values().collect();
    give(&Export { standing: Standing { view: &view, live: false }, rulings: &rulings, findings })
}

fn forge() -> Options<'static> {
    let mut options = Options::default();
    let more = &mut options.extension;
    (more.strikethrough, more.table, more.autolink, more.tasklist, more.footnotes) =
        (true, true, true, true, true);
    (more.inline_footnotes, more.alerts, more.math_dollars, more.math_code) = (true, true, true, true);
    (more.wikilinks_title_after_pipe, more.description_lists) = (true, true);
    options.parse.relaxed_autolinks = true;
    options.parse.tasklist_in_table = true;
    options
}

/// What a forge makes of a page: its tree, including all HTML, and its text.
struct Read {
    tree: Vec<String>,
    text: String,
}

fn read(markdown: &str) -> Read {
    let arena = Arena::new();
    let root = parse_document(&arena, markdown, &forge());
    let mut read = Read { tree: Vec::new(), text: String::new() };
    walk(root, 0, &mut read);
    read
}

fn walk<'a>(node: Node<'a>, depth: usize, read: &mut Read) {
    let name = match &node.data().value {
        NodeValue::Text(text) => {
            read.text.push_str(text);
            None
        }
        NodeValue::HtmlInline(html) => Some(format!("html {html}")),
        NodeValue::HtmlBlock(html) => Some(format!("html {}", html.literal)),
        NodeValue::CodeBlock(block) => Some(format!("code {}", block.info)),
        NodeValue::Heading(heading) => Some(format!("heading {}", heading.level)),
        NodeValue::TableRow(_) | NodeValue::TableCell => Some("table".into()),
        other => Some(format!("{:?}", std::mem::discriminant(other))),
    };
    read.tree.extend(name.map(|name| format!("{depth} {name}")));
    node.children().for_each(|child| walk(child, depth + 1, read));
    if node.data().value.block() || matches!(node.data().value, NodeValue::TableCell) {
        read.text.push('\n');
    }
}

/// Replaces every character by an `x`; white space stays, so that lines stay lines.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { c } else { 'x' }).collect()
}

fn assert_inert(journal: fn() -> Vec<Entry>, text: &str) {
    for give in [|export: &Export<'_>| export.markdown(), |export: &Export<'_>| export.comment()] {
        let hostile = given(&told(journal(), text), give);
        let plain = given(&told(journal(), &harmless(text)), give);
        let (read, expected) = (read(&hostile), read(&plain));
        assert_eq!(read.tree, expected.tree, "{text:?}\n{hostile}");
        let seen = read.text.replace('\u{200b}', "");
        assert!(seen.contains(&clean(text)), "{text:?}\n{seen}");
        assert!(
            !hostile.contains(|c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}'),
            "{hostile:?}"
        );
        assert_calls_nobody(&read.text);
    }
    let log = given(&told(journal(), text), |export| export.sarif("0.1.0"));
    let log: serde_json::Value = serde_json::from_str(&log).unwrap();
    let (view, results) = (RunView::of(&journal()), log["runs"][0]["results"].as_array().unwrap());
    assert_eq!(results.len(), view.findings.len(), "{text:?}");
    for (result, finding) in results.iter().zip(view.findings.values()) {
        assert_eq!(result["properties"]["finding"], finding.id.to_string(), "{text:?}");
        assert_eq!(result["properties"]["status"], finding.status.word(), "{text:?}");
        let said = result["message"]["text"].as_str().unwrap();
        assert!(
            !said.contains("](") && !said.contains(|c: char| c.is_control() && !"\n\t".contains(c)),
            "{said:?}"
        );
    }
}

/// Checks that the rendered text has none of the patterns that forges turn into mentions and links.
fn assert_calls_nobody(text: &str) {
    let lower = text.to_lowercase();
    for sign in ["://", "www."] {
        assert!(!lower.contains(sign), "{sign}: {text}");
    }
    for (at, sign) in lower.match_indices(['@', '#']).chain(lower.match_indices("gh-")) {
        let next = lower[at + sign.len()..].chars().next();
        let names = |c: char| if sign == "gh-" { c.is_ascii_digit() } else { c.is_alphanumeric() };
        assert!(!next.is_some_and(names), "{}", &lower[at..]);
    }
}

#[test]
fn no_single_sign_breaks_out() {
    for sign in HOSTILE {
        for text in [format!("{sign}z"), format!("z {sign} z"), format!("z{sign}{sign}z")] {
            assert_inert(challenged, &text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_agents_write_breaks_out_of_its_place(text in text()) {
        assert_inert(challenged, &text);
        assert_inert(|| entries(SAMPLE_JOURNAL), &text);
    }
}

#[test]
fn the_judge_sees_what_breaks_out() {
    let tree = |markdown: &str| read(markdown).tree;
    for (inside, broken) in [
        ("| a |\n|--|\n| x |\n", "| a |\n|--|\n| **x** |\n"),
        ("x", "https://evil.example"),
        ("x", "![x](y)"),
        ("x", "<b>"),
        ("> x", "> [!NOTE]\n> x"),
        ("<details>\n\nx\n\n</details>", "<details>\n\nx</details>\n\n</details>"),
        ("x", "$x$"),
    ] {
        assert_ne!(tree(inside), tree(broken), "{broken}");
    }
}
