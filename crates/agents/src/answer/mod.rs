//! Parses what an agent said into typed findings, fixes or rulings, or into a free answer.
//!
//! The parser is lenient on purpose: it accepts YAML or JSON, fenced, bare or in prose, broken or cut off, with the
//! names that other tools' prompts use. Everything that can be understood becomes a value, and everything that had to
//! be skipped becomes a remark. An answer is unreadable only if it has no list, or if no item of its lists can be used.
//! What an answer is worth is not decided here but in `workflows`.
//!
//! [`regions`] removes what an answer is wrapped in, [`list_finder`] and [`lenient_json`] find the lists, and
//! [`items`] reads the items in them, by the names in [`vocabulary`]. [`free_answer`] reads answers without lists.

mod free_answer;
mod indented_lines;
mod items;
mod lenient_json;
mod list_finder;
mod minutes;
mod node;
mod regions;
mod vocabulary;

use std::collections::HashSet;

use tribunal_engine::text::truncate_chars;
use tribunal_workflows::{
    findings::agent_role::AgentRole,
    tasks::{brief::AnswerContent, party_minutes::PartyMinutes, purpose::ExpectedAnswer},
};

use list_finder::{FoundNodes, StrictYamlError, find_lists, parse_strict_yaml};
use node::{AnswerNode, matches_any_name};
use regions::{AnswerRegion, split_regions, strip_wrapping};
use vocabulary::ListVocabulary;

/// What kind of list an answer should contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    Findings,
    Fixes,
    /// A challenger's verdict on each finding.
    Verdicts,
}

/// A parsed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedAnswer {
    pub content: AnswerContent,
    /// What a party reported in addition to its findings.
    pub minutes: PartyMinutes,
    pub remarks: Vec<String>,
}

/// The most items that are kept of an answer: the most severe findings, or the first fixes and verdicts.
pub const MAX_ITEMS: usize = 1_000;
/// The most remarks that are kept of an answer.
pub const MAX_REMARKS: usize = 30;
/// How many envelopes are opened, one inside the other: some clients wrap the answer as a string into a JSON object.
const MAX_ENVELOPES: u32 = 2;

impl AnswerKind {
    /// The kind of answer that an agent in this role is asked for.
    pub fn for_role(role: AgentRole) -> AnswerKind {
        match role {
            AgentRole::Fixer => AnswerKind::Fixes,
            AgentRole::Challenger | AgentRole::Judge => AnswerKind::Verdicts,
            _ => AnswerKind::Findings,
        }
    }

    /// The kind of list that a task expects; `None` if it expects no list.
    pub fn from_expected(expects: ExpectedAnswer) -> Option<AnswerKind> {
        match expects {
            ExpectedAnswer::Findings => Some(AnswerKind::Findings),
            ExpectedAnswer::Fixes => Some(AnswerKind::Fixes),
            ExpectedAnswer::Rulings => Some(AnswerKind::Verdicts),
            ExpectedAnswer::Status | ExpectedAnswer::Question | ExpectedAnswer::Text | ExpectedAnswer::Turn => None,
        }
    }

    fn vocabulary(self) -> ListVocabulary {
        match self {
            AnswerKind::Findings => vocabulary::FINDINGS_VOCABULARY,
            AnswerKind::Fixes => vocabulary::FIXES_VOCABULARY,
            AnswerKind::Verdicts => vocabulary::VERDICTS_VOCABULARY,
        }
    }
}

/// Reads the answer that a task expects. Questions are read as plain text: which of them are menus is known in `bmad`.
pub fn read_answer(answer_text: &str, expects: ExpectedAnswer) -> ParsedAnswer {
    if let Some(answer_kind) = AnswerKind::from_expected(expects) {
        return parse_answer(answer_text, answer_kind);
    }
    let content = match expects {
        ExpectedAnswer::Status => free_answer::read_status(answer_text),
        ExpectedAnswer::Turn => free_answer::read_turn(answer_text),
        _ => free_answer::read_text(answer_text),
    };
    ParsedAnswer { content, minutes: PartyMinutes::default(), remarks: Vec::new() }
}

/// Parses an answer. This never fails: an answer without a usable list has the content `Unreadable` with the reason.
pub fn parse_answer(answer_text: &str, answer_kind: AnswerKind) -> ParsedAnswer {
    let found_lists = gather_lists(&strip_wrapping(answer_text), answer_kind, MAX_ENVELOPES);
    // An empty list is an answer ("nothing found"); no list at all is not.
    if found_lists.list_count == 0 {
        let message = found_lists.read_problem.unwrap_or_else(|| describe_missing_list(answer_text, answer_kind));
        return ParsedAnswer {
            content: AnswerContent::Unreadable { message },
            minutes: PartyMinutes::default(),
            remarks: found_lists.remarks,
        };
    }
    items::read_items(found_lists, answer_kind)
}

/// Describes an answer in which no list was found.
fn describe_missing_list(answer_text: &str, answer_kind: AnswerKind) -> String {
    let list_name = answer_kind.vocabulary().list_names[0];
    let answer_text = answer_text.trim();
    if answer_text.is_empty() {
        return "the answer is empty".to_string();
    }
    let first_line = answer_text.lines().next().unwrap_or_default();
    format!("the answer has no `{list_name}` list; it begins: {}", truncate_chars(first_line.trim(), 80))
}

/// The lists that were found in the regions of an answer.
#[derive(Debug, Default)]
struct FoundLists {
    /// The number of lists; 0 means that none was found.
    list_count: usize,
    items: Vec<AnswerNode>,
    /// The same items, for a fast search for repetitions.
    known_items: HashSet<AnswerNode>,
    /// The pairs next to the lists, for example a party's consensus.
    sibling_maps: Vec<AnswerNode>,
    remarks: Vec<String>,
    /// The reason why nothing could be read.
    read_problem: Option<String>,
    /// Texts that may themselves be answers.
    nested_answers: Vec<String>,
}

/// Collects the lists of all regions: all of them count, not only the last one. A list that was introduced as an
/// example, or that is the form from the prompt, counts only if there is no other.
fn gather_lists(answer_text: &str, answer_kind: AnswerKind, envelopes: u32) -> FoundLists {
    let mut answer_lists = FoundLists::default();
    let mut example_lists = FoundLists::default();
    // Every region is collected by itself first, because its remarks depend on how it was read as a whole.
    for region in split_regions(answer_text) {
        let found_nodes = read_region(region, answer_kind, &mut answer_lists.read_problem);
        let mut region_lists = FoundLists::default();
        for node in found_nodes.nodes {
            region_lists.add_node(node, answer_kind);
        }
        if found_nodes.is_truncated && region_lists.items.is_empty() && region_lists.list_count > 0 {
            // The answer broke off before the first item: perhaps there was nothing to say, perhaps everything was
            // lost. That must not pass as an empty list.
            let list_name = answer_kind.vocabulary().list_names[0];
            region_lists.list_count = 0;
            region_lists.read_problem =
                Some(format!("the `{list_name}` list could not be read: the answer is cut off before its first item"));
        }
        if region_lists.list_count > 0 {
            region_lists.add_remark_if(found_nodes.is_guessed, "the list is malformed; it was read as far as possible");
            region_lists.add_remark_if(found_nodes.is_truncated, "the answer is cut off; its complete items were kept");
        }
        // An agent that repeats the requested form before answering did not mean it as findings.
        let is_blank_form = !region_lists.items.is_empty() && region_lists.items.iter().all(items::is_blank_form);
        let target_lists = if region.is_example || is_blank_form { &mut example_lists } else { &mut answer_lists };
        target_lists.merge_lists(region_lists);
    }
    // Texts inside of JSON are opened only if nothing was found outside of them.
    if answer_lists.list_count == 0 && envelopes > 0 {
        for nested_answer in std::mem::take(&mut answer_lists.nested_answers) {
            answer_lists.merge_lists(gather_lists(&strip_wrapping(&nested_answer), answer_kind, envelopes - 1));
        }
    }
    // An example is better than nothing: it may be the only answer.
    if answer_lists.list_count == 0 {
        example_lists.read_problem = answer_lists.read_problem;
        return example_lists;
    }
    let example_count = example_lists.items.iter().filter(|example_item| !items::is_blank_form(example_item)).count();
    answer_lists
        .add_remark_if(example_count > 0, &format!("ignored an example with {example_count} items before the answer"));
    answer_lists
}

/// Reads a region. A fenced block is first parsed strictly; prose and broken blocks are searched for lists.
fn read_region(region: AnswerRegion<'_>, answer_kind: AnswerKind, read_problem: &mut Option<String>) -> FoundNodes {
    let vocabulary_names = answer_kind.vocabulary();
    let region_text = region.text.trim();
    if !region.is_fenced {
        return find_lists(region.text, vocabulary_names);
    }
    let is_flow = region_text.starts_with(['{', '[']);
    // JSON is tried with the lenient reader first. On valid JSON it reads the same as a strict parser, but keeps
    // numbers as they are written.
    if is_flow {
        let found_nodes = find_lists(region.text, vocabulary_names);
        if !found_nodes.is_guessed && !found_nodes.is_truncated {
            return found_nodes;
        }
    }
    match parse_strict_yaml(region.text) {
        // Valid YAML without a list may still contain one as text, so the search below gets a second chance.
        Ok(strict_node) if FoundLists::from_node(strict_node.clone(), answer_kind).list_count > 0 => {
            FoundNodes { nodes: vec![strict_node], ..FoundNodes::default() }
        }
        Ok(_) | Err(StrictYamlError::LossyValue) => find_lists(region.text, vocabulary_names),
        // The strict parser's message is kept in case the search finds nothing either.
        Err(StrictYamlError::Invalid(yaml_error)) => {
            *read_problem =
                Some(format!("the `{}` list could not be read: {yaml_error}", vocabulary_names.list_names[0]));
            FoundNodes { is_guessed: true, ..find_lists(region.text, vocabulary_names) }
        }
    }
}

impl FoundLists {
    fn from_node(answer_node: AnswerNode, answer_kind: AnswerKind) -> FoundLists {
        let mut found_lists = FoundLists::default();
        found_lists.add_node(answer_node, answer_kind);
        found_lists
    }

    fn add_remark_if(&mut self, condition: bool, remark: &str) {
        if condition && !self.remarks.iter().any(|known_remark| known_remark == remark) {
            self.remarks.push(remark.to_string());
        }
    }

    /// Adds the lists of another region, without the items that are already known.
    fn merge_lists(&mut self, added_lists: FoundLists) {
        let (has_lists, known_count) = (self.list_count > 0, self.items.len());
        self.list_count += added_lists.list_count;
        if has_lists {
            // Drafts and envelopes repeat the same items. Inside one list, however, repetitions are kept as they are.
            let new_items = added_lists.items.into_iter().filter(|added_item| !self.known_items.contains(added_item));
            let new_items: Vec<AnswerNode> = new_items.collect();
            self.items.extend(new_items);
        } else {
            self.items.extend(added_lists.items);
        }
        self.known_items.extend(self.items[known_count..].iter().cloned());
        self.sibling_maps.extend(added_lists.sibling_maps);
        self.nested_answers.extend(added_lists.nested_answers);
        for remark in added_lists.remarks {
            self.add_remark_if(true, &remark);
        }
        self.read_problem = self.read_problem.take().or(added_lists.read_problem);
    }

    /// Adds what is found in a node: an item, a list of items, or lists anywhere below it.
    fn add_node(&mut self, answer_node: AnswerNode, answer_kind: AnswerKind) {
        if items::is_answer_item(&answer_node, answer_kind) {
            self.list_count += 1;
            self.items.push(answer_node);
            return;
        }
        match answer_node {
            AnswerNode::Map(pairs) => self.add_map(pairs, answer_kind),
            // One recognizable item makes the whole list an answer; its other items are reported as unusable later.
            AnswerNode::List(child_nodes) => {
                if child_nodes.iter().any(|child_node| items::is_answer_item(child_node, answer_kind)) {
                    self.list_count += 1;
                    self.items.extend(child_nodes);
                } else {
                    child_nodes.into_iter().for_each(|child_node| self.add_node(child_node, answer_kind));
                }
            }
            // A text is only kept for opening if it could contain a list at all.
            AnswerNode::Text(nested_text) => {
                let list_names = answer_kind.vocabulary().list_names;
                if list_names.iter().any(|list_name| nested_text.contains(*list_name)) && nested_text.contains(':') {
                    self.nested_answers.push(nested_text);
                }
            }
            AnswerNode::Nothing => {}
        }
    }

    /// Adds the lists of a map and remembers the pairs that belong next to them.
    fn add_map(&mut self, pairs: Vec<(String, AnswerNode)>, answer_kind: AnswerKind) {
        let vocabulary_names = answer_kind.vocabulary();
        let mut sibling_pairs = Vec::new();
        for (pair_key, pair_value) in pairs {
            if matches_any_name(&pair_key, vocabulary_names.sibling_keys) {
                sibling_pairs.push((pair_key, pair_value));
            } else if matches_any_name(&pair_key, vocabulary_names.list_names)
                && matches!(pair_value, AnswerNode::List(_) | AnswerNode::Map(_))
            {
                if let Some(list_items) = items::into_list_items(pair_value, answer_kind) {
                    self.list_count += 1;
                    self.items.extend(list_items);
                }
            } else {
                self.add_node(pair_value, answer_kind);
            }
        }
        if !sibling_pairs.is_empty() {
            self.sibling_maps.push(AnswerNode::Map(sibling_pairs));
        }
    }
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::{
        findings::{
            finding::{Evidence, Severity},
            subject::Subject,
        },
        tasks::{
            brief::{RaisedFinding, ReviewBrief},
            claims::ClaimStatus,
        },
    };

    use super::*;

    fn parse_findings(answer_text: &str) -> Vec<RaisedFinding> {
        match parse_answer(answer_text, AnswerKind::Findings).content {
            AnswerContent::Findings { raised } => raised,
            other_content => panic!("{other_content:?}"),
        }
    }

    #[test]
    fn the_same_finding_is_read_from_many_forms() {
        let yaml_answer =
            "findings:\n  - severity: high\n    category: a\n    description: d\n    quote: \"q: 1\"\n    line: 7\n";
        let json_answer = r#"{"issues":[{"severity":"HIGH","category":"a","issue":"d","evidence":{"quote":"q: 1"},"location":"x.md:7"}]}"#;
        for answer_text in [
            format!("Here is what I found.\n\n```yaml\n{yaml_answer}```\nThat is all."),
            format!("```\n{yaml_answer}"),
            format!("Some prose first.\n{yaml_answer}"),
            yaml_answer.to_string(),
            format!("```json\n{json_answer}\n```"),
            format!("Sure! {json_answer}"),
        ] {
            let found_findings = parse_findings(&answer_text);
            assert_eq!(found_findings.len(), 1, "{answer_text}");
            assert_eq!(found_findings[0].severity, Severity::High, "{answer_text}");
            assert_eq!(found_findings[0].evidence, Evidence::Quote { text: "q: 1".into() }, "{answer_text}");
            assert_eq!(found_findings[0].line, Some(7), "{answer_text}");
        }
    }

    #[test]
    fn a_fence_inside_a_quoted_text_does_not_end_the_answer() {
        let answer_text = [
            "```yaml",
            "findings:",
            "  - description: d",
            "    quote: q",
            "    suggested_fix: |",
            "      Write:",
            "      ```",
            "      x: 1",
            "      ```",
            "  - description: second",
            "    quote: r",
            "```",
        ];
        assert_eq!(parse_findings(&answer_text.join("\n")).len(), 2);
    }

    #[test]
    fn a_list_outside_of_all_fences_is_found_too() {
        assert_eq!(
            parse_findings("For example:\n```sh\nls\n```\nfindings:\n  - {description: d, quote: q}\n").len(),
            1
        );
    }

    #[test]
    fn the_last_block_counts_not_the_example_before_it() {
        let answer_text = "The form:\n```yaml\nfindings:\n  - description: example\n    quote: x\n```\nMine:\n```yaml\nfindings: []\n```\n";
        assert_eq!(parse_findings(answer_text), []);
    }

    #[test]
    fn usable_items_are_kept_and_the_others_become_remarks() {
        let answer_text = "findings:\n  - description: no evidence\n  - severity: gruesome\n    description: d\n    quote: q\n  - 7\n";
        let parsed = parse_answer(answer_text, AnswerKind::Findings);
        let AnswerContent::Findings { raised } = parsed.content else { panic!() };
        assert_eq!(raised.len(), 1);
        assert_eq!(parsed.remarks.len(), 3, "{:?}", parsed.remarks);
    }

    #[test]
    fn a_text_without_a_list_is_unreadable_and_gives_the_reason() {
        for (answer_text, expected_words) in [
            ("", "empty"),
            ("All good, nothing found!", "no `findings` list"),
            ("```yaml\nfindings: [\n```", "could not be read"),
        ] {
            let AnswerContent::Unreadable { message } = parse_answer(answer_text, AnswerKind::Findings).content else {
                panic!("{answer_text}")
            };
            assert!(message.contains(expected_words), "{message}");
        }
    }

    #[test]
    fn a_list_of_which_nothing_can_be_used_is_not_an_empty_list() {
        let parsed = parse_answer("findings:\n  - description: vague worry\n", AnswerKind::Findings);
        let AnswerContent::Unreadable { message } = parsed.content else { panic!("{parsed:?}") };
        assert!(message.contains("neither `quote` nor `absent`"), "{message}");
    }

    #[test]
    fn an_echoed_prompt_is_not_an_answer() {
        for role in AgentRole::ALL {
            let brief = ReviewBrief::new(role, Subject::from_path("a.md", None), 1);
            let echoed_prompt =
                crate::prompt::render_prompt(&brief, "# A\n```yaml\nfindings: []\n```\n", None).unwrap();
            let content = parse_answer(&echoed_prompt, AnswerKind::for_role(role)).content;
            assert!(matches!(content, AnswerContent::Unreadable { .. }), "{role}: {content:?}");
            let answer = match AnswerKind::for_role(role) {
                AnswerKind::Findings => "findings: []",
                AnswerKind::Fixes => "fixes: []",
                AnswerKind::Verdicts => "verdicts: []",
            };
            let content =
                parse_answer(&format!("{echoed_prompt}\n```yaml\n{answer}\n```\n"), AnswerKind::for_role(role)).content;
            assert!(!matches!(content, AnswerContent::Unreadable { .. }), "{role}: {content:?}");
        }
    }

    #[test]
    fn fixes_are_claims_about_findings() {
        let answer_text = [
            "```yaml",
            "fixes:",
            "  - {id: F2, status: fixed, fix_description: did it}",
            "  - {id: F3, status: BLOCKED, reason: who decides?}",
            "  - {id: X, status: FIXED}",
            "```",
        ]
        .join("\n");
        let parsed = parse_answer(&answer_text, AnswerKind::Fixes);
        let AnswerContent::Fixes { claims, .. } = parsed.content else { panic!() };
        assert_eq!(
            claims.iter().map(|c| (c.id.0, c.said)).collect::<Vec<_>>(),
            [(2, ClaimStatus::Fixed), (3, ClaimStatus::Blocked)]
        );
        assert_eq!(parsed.remarks, ["item 3 was ignored: `X` is not a finding id"]);
    }

    #[test]
    fn an_absence_is_evidence_too() {
        let found_findings =
            parse_findings("findings:\n- description: d\n  absent: {heading: Privacy, terms: [erase, 90]}\n");
        let terms = vec!["erase".to_string(), "90".to_string()];
        assert_eq!(found_findings[0].evidence, Evidence::Absence { heading: "Privacy".into(), terms });
    }
}
