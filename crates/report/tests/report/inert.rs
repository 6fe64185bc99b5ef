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
use tribunal_engine::ids::{AgentName, DecisionId, RunId};
use tribunal_report::{FindingsExport, RulingIndex, clean_line, tables::RunStanding};
use tribunal_testkit::{SAMPLE_JOURNAL, challenged_journal, parse_entries};
use tribunal_workflows::{
    findings::{
        finding::{Evidence, Finding, FindingStatus},
        subject::Subject,
    },
    review::event::ReviewEvent,
    runs::{
        kinds::RunOrder,
        types::{JournalEntry, RunEvent},
        view::RunView,
    },
};

use crate::events::review_event_mut;

const HOSTILE_MARKUP: &[&str] = &[
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

fn any_hostile_text() -> impl Strategy<Value = String> {
    let text_part = prop_oneof![
        6 => prop::sample::select(HOSTILE_MARKUP).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
        1 => "[ -~]{1,5}",
    ];
    // The last letter ensures that something is left of the text after it is cleaned.
    prop::collection::vec(text_part, 0..8).prop_map(|parts| parts.concat() + "z")
}

/// The journal with the text in every place where an agent, a document or a name may have put it.
fn fill_journal(mut journal: Vec<JournalEntry>, hostile_text: &str) -> Vec<JournalEntry> {
    for journal_entry in &mut journal {
        journal_entry.run = RunId::new(hostile_text);
        match &mut journal_entry.event {
            RunEvent::RunStarted { order: RunOrder::Review(order), .. } => {
                order.subject = Subject::Document { path: hostile_text.into(), section: Some(hostile_text.into()) };
            }
            RunEvent::RunFinished(summary) => summary.detail = hostile_text.into(),
            run_event => {
                if let Some(event) = review_event_mut(run_event) {
                    fill_event(event, hostile_text);
                }
            }
        }
    }
    journal
}

fn fill_event(event: &mut ReviewEvent, hostile_text: &str) {
    match event {
        ReviewEvent::FindingRaised { finding } => fill_finding(finding, hostile_text),
        ReviewEvent::FindingJoined { raiser, .. } => raiser.agent = AgentName::new(hostile_text),
        ReviewEvent::FindingRuled { voices, .. } => {
            for (index, voice) in voices.iter_mut().enumerate() {
                voice.agent = AgentName::new(format!("{hostile_text}{index}"));
                (voice.note, voice.counter) = (hostile_text.into(), hostile_text.into());
            }
        }
        ReviewEvent::FindingMoved { transition, .. } => {
            transition.note = hostile_text.into();
            if let FindingStatus::Blocked { decision } = &mut transition.to {
                *decision = DecisionId::new(hostile_text);
            }
        }
        _ => {}
    }
}

fn fill_finding(finding: &mut Finding, hostile_text: &str) {
    finding.category = hostile_text.into();
    finding.description = hostile_text.into();
    finding.suggested_fix = hostile_text.into();
    finding.raisers.iter_mut().for_each(|raiser| raiser.agent = AgentName::new(hostile_text));
    finding.history.iter_mut().for_each(|history_step| history_step.note = hostile_text.into());
    if let Some(place) = &mut finding.place {
        // In the comment a place names its file only if that is not the file under review.
        place.file = if finding.id.0.is_multiple_of(2) { hostile_text.into() } else { format!("{hostile_text}/b") };
        place.section = hostile_text.into();
    }
    match &mut finding.evidence {
        Evidence::Quote { text: quote } => *quote = hostile_text.into(),
        Evidence::Absence { heading, terms } => {
            (*heading, *terms) = (hostile_text.into(), vec![hostile_text.into(), hostile_text.into()])
        }
        Evidence::Check { command, output } => (*command, *output) = (hostile_text.into(), hostile_text.into()),
    }
}

fn render_export(journal: &[JournalEntry], render: fn(&FindingsExport<'_>) -> String) -> String {
    let (run_view, rulings) = (RunView::from_entries(journal), RulingIndex::from_entries(journal));
    let all_findings = run_view.all_findings().collect();
    render(&FindingsExport {
        run_standing: RunStanding { run_view: &run_view, is_live: false },
        rulings: &rulings,
        findings: all_findings,
    })
}

fn forge_options() -> Options<'static> {
    let mut options = Options::default();
    let extensions = &mut options.extension;
    (extensions.strikethrough, extensions.table, extensions.autolink, extensions.tasklist, extensions.footnotes) =
        (true, true, true, true, true);
    (extensions.inline_footnotes, extensions.alerts, extensions.math_dollars, extensions.math_code) =
        (true, true, true, true);
    (extensions.wikilinks_title_after_pipe, extensions.description_lists) = (true, true);
    options.parse.relaxed_autolinks = true;
    options.parse.tasklist_in_table = true;
    options
}

/// What a forge makes of a page: its tree, including all HTML, and its text.
struct ParsedMarkdown {
    node_tree: Vec<String>,
    plain_text: String,
}

fn parse_markdown(markdown: &str) -> ParsedMarkdown {
    let arena = Arena::new();
    let root_node = parse_document(&arena, markdown, &forge_options());
    let mut parsed = ParsedMarkdown { node_tree: Vec::new(), plain_text: String::new() };
    walk_node(root_node, 0, &mut parsed);
    parsed
}

fn walk_node<'a>(tree_node: Node<'a>, depth: usize, parsed: &mut ParsedMarkdown) {
    let node_name = match &tree_node.data().value {
        NodeValue::Text(node_text) => {
            parsed.plain_text.push_str(node_text);
            None
        }
        NodeValue::HtmlInline(html_node) => Some(format!("html {html_node}")),
        NodeValue::HtmlBlock(html_node) => Some(format!("html {}", html_node.literal)),
        NodeValue::CodeBlock(code_block) => Some(format!("code {}", code_block.info)),
        NodeValue::Heading(heading) => Some(format!("heading {}", heading.level)),
        NodeValue::TableRow(_) | NodeValue::TableCell => Some("table".into()),
        other_value => Some(format!("{:?}", std::mem::discriminant(other_value))),
    };
    parsed.node_tree.extend(node_name.map(|node_name| format!("{depth} {node_name}")));
    tree_node.children().for_each(|child| walk_node(child, depth + 1, parsed));
    if tree_node.data().value.block() || matches!(tree_node.data().value, NodeValue::TableCell) {
        parsed.plain_text.push('\n');
    }
}

/// Replaces every character by an `x`; white space stays, so that lines stay lines.
fn mask_letters(hostile_text: &str) -> String {
    hostile_text.chars().map(|character| if character.is_whitespace() { character } else { 'x' }).collect()
}

fn assert_inert(journal: fn() -> Vec<JournalEntry>, hostile_text: &str) {
    for render_format in
        [|export: &FindingsExport<'_>| export.to_markdown(), |export: &FindingsExport<'_>| export.to_comment()]
    {
        let hostile_page = render_export(&fill_journal(journal(), hostile_text), render_format);
        let harmless_page = render_export(&fill_journal(journal(), &mask_letters(hostile_text)), render_format);
        let (parsed, expected_parse) = (parse_markdown(&hostile_page), parse_markdown(&harmless_page));
        assert_eq!(parsed.node_tree, expected_parse.node_tree, "{hostile_text:?}\n{hostile_page}");
        let visible_text = parsed.plain_text.replace('\u{200b}', "");
        assert!(visible_text.contains(&clean_line(hostile_text)), "{hostile_text:?}\n{visible_text}");
        assert!(
            !hostile_page.contains(|c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}'),
            "{hostile_page:?}"
        );
        assert_no_references(&parsed.plain_text);
    }
    let sarif_text = render_export(&fill_journal(journal(), hostile_text), |export| export.to_sarif("0.1.0"));
    let sarif_log: serde_json::Value = serde_json::from_str(&sarif_text).unwrap();
    let (run_view, results) = (RunView::from_entries(&journal()), sarif_log["runs"][0]["results"].as_array().unwrap());
    assert_eq!(results.len(), run_view.all_findings().count(), "{hostile_text:?}");
    for (sarif_result, finding) in results.iter().zip(run_view.all_findings()) {
        assert_eq!(sarif_result["properties"]["finding"], finding.id.to_string(), "{hostile_text:?}");
        assert_eq!(sarif_result["properties"]["status"], finding.status.as_str(), "{hostile_text:?}");
        let message_text = sarif_result["message"]["text"].as_str().unwrap();
        assert!(
            !message_text.contains("](") && !message_text.contains(|c: char| c.is_control() && !"\n\t".contains(c)),
            "{message_text:?}"
        );
    }
}

/// Checks that the rendered text has none of the patterns that forges turn into mentions and links.
fn assert_no_references(visible_text: &str) {
    let lowercase_text = visible_text.to_lowercase();
    for link_marker in ["://", "www."] {
        assert!(!lowercase_text.contains(link_marker), "{link_marker}: {visible_text}");
    }
    for (marker_offset, reference_marker) in
        lowercase_text.match_indices(['@', '#']).chain(lowercase_text.match_indices("gh-"))
    {
        let next_char = lowercase_text[marker_offset + reference_marker.len()..].chars().next();
        let continues_reference = |character: char| {
            if reference_marker == "gh-" { character.is_ascii_digit() } else { character.is_alphanumeric() }
        };
        assert!(!next_char.is_some_and(continues_reference), "{}", &lowercase_text[marker_offset..]);
    }
}

#[test]
fn no_single_hostile_part_breaks_out() {
    for hostile_part in HOSTILE_MARKUP {
        for hostile_text in
            [format!("{hostile_part}z"), format!("z {hostile_part} z"), format!("z{hostile_part}{hostile_part}z")]
        {
            assert_inert(challenged_journal, &hostile_text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_agents_write_breaks_out_of_its_place(text in any_hostile_text()) {
        assert_inert(challenged_journal, &text);
        assert_inert(|| parse_entries(SAMPLE_JOURNAL), &text);
    }
}

#[test]
fn the_parser_notices_text_that_breaks_out() {
    let parse_tree = |markdown: &str| parse_markdown(markdown).node_tree;
    for (harmless_page, broken_page) in [
        ("| a |\n|--|\n| x |\n", "| a |\n|--|\n| **x** |\n"),
        ("x", "https://evil.example"),
        ("x", "![x](y)"),
        ("x", "<b>"),
        ("> x", "> [!NOTE]\n> x"),
        ("<details>\n\nx\n\n</details>", "<details>\n\nx</details>\n\n</details>"),
        ("x", "$x$"),
    ] {
        assert_ne!(parse_tree(harmless_page), parse_tree(broken_page), "{broken_page}");
    }
}
