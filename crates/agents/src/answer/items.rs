//! Reads the items of an answer's list as findings, claims and rulings: severity scales, ids and verdicts. What a
//! finding rests on is read by [`evidence`].

mod evidence;

use tribunal_engine::{ids::FindingId, text::truncate_chars};
use tribunal_workflows::{
    findings::finding::Severity,
    tasks::{
        answer_words::{
            CLAIM_WORDS, VERDICT_WORDS, describe_unknown_words, read_claim_status, read_severity, read_verdict,
        },
        brief::{AnswerContent, RaisedFinding},
        claims::{ChallengeVerdict, ChallengerRuling, FixClaim, PartRuling, UnknownWord},
        party_minutes::PartyMinutes,
    },
};

use super::{
    AnswerKind, FoundLists, MAX_ITEMS, MAX_REMARKS, ParsedAnswer, minutes,
    node::{AnswerNode, matches_any_name},
    vocabulary::{
        ABSENCE_KEYS, CATEGORY_KEYS, COUNTER_EVIDENCE_KEYS, DESCRIPTION_KEYS, EVIDENCE_KEYS, FINDING_ID_KEYS,
        MEMORY_SAVED_KEYS, MODIFIED_FILES_KEYS, NOTE_KEYS, QUOTE_KEYS, SEVERITY_KEYS, STATUS_KEYS, SUGGESTED_FIX_KEYS,
        VERDICT_KEYS, VERIFICATION_KEYS,
    },
};
use evidence::{first_text, read_evidence, read_file_name, read_line_number, truncate_quote};

/// The longest text of an item, in characters.
const MAX_TEXT_CHARS: usize = 4_000;

/// Whether a map is an item of this kind, regardless of where it is found.
pub(super) fn is_answer_item(candidate_node: &AnswerNode, answer_kind: AnswerKind) -> bool {
    match answer_kind {
        AnswerKind::Findings => {
            candidate_node.has_any(DESCRIPTION_KEYS)
                && (candidate_node.has_any(QUOTE_KEYS)
                    || candidate_node.has_any(ABSENCE_KEYS)
                    || candidate_node.has_any(EVIDENCE_KEYS))
        }
        AnswerKind::Fixes => candidate_node.has_any(FINDING_ID_KEYS) && candidate_node.has_any(STATUS_KEYS),
        AnswerKind::Verdicts => {
            (candidate_node.has_any(FINDING_ID_KEYS) && candidate_node.has_any(VERDICT_KEYS))
                || single_id_pair(candidate_node).is_some()
        }
    }
}

/// Returns the pair of a map like `F3: VALID` that has nothing else in it.
fn single_id_pair(item_node: &AnswerNode) -> Option<(FindingId, &AnswerNode)> {
    match item_node {
        AnswerNode::Map(pairs) if pairs.len() == 1 => {
            let (pair_key, pair_value) = pairs.first()?;
            Some((parse_finding_id(pair_key)?, pair_value))
        }
        _ => None,
    }
}

/// Turns the value under a list's name into items: a list, a single item instead of a list, or a map of items by id
/// or severity.
pub(super) fn into_list_items(list_value: AnswerNode, answer_kind: AnswerKind) -> Option<Vec<AnswerNode>> {
    match list_value {
        AnswerNode::List(list_items) => Some(list_items),
        AnswerNode::Map(pairs) => {
            let map_node = AnswerNode::Map(pairs);
            // A map that is an item itself must not be taken for a map of items.
            if is_answer_item(&map_node, answer_kind) || is_blank_form(&map_node) {
                return Some(vec![map_node]);
            }
            let AnswerNode::Map(pairs) = map_node else { return None };
            let list_items: Vec<AnswerNode> =
                pairs.into_iter().flat_map(|(pair_key, pair_value)| items_below_key(pair_key, pair_value)).collect();
            (!list_items.is_empty()).then_some(list_items)
        }
        AnswerNode::Text(_) | AnswerNode::Nothing => None,
    }
}

/// The items under one key of a map, with the key as their id or severity.
fn items_below_key(group_key: String, group_value: AnswerNode) -> Vec<AnswerNode> {
    let with_first_pair = |pair_key: &str, mut pairs: Vec<(String, AnswerNode)>, pair_text: &str| {
        // The last value of a key counts, so the item's own value overrides this one.
        pairs.insert(0, (pair_key.to_string(), AnswerNode::Text(pair_text.to_string())));
        AnswerNode::Map(pairs)
    };
    match group_value {
        AnswerNode::Map(pairs) => vec![with_first_pair("id", pairs, &group_key)],
        AnswerNode::List(list_items) => {
            let list_items = list_items.into_iter().map(|list_item| match list_item {
                AnswerNode::Map(pairs) if Severity::parse(&group_key).is_some() => {
                    with_first_pair("severity", pairs, &group_key)
                }
                other_node => other_node,
            });
            list_items.collect()
        }
        AnswerNode::Text(status_text) => {
            vec![with_first_pair("id", vec![("status".to_string(), AnswerNode::Text(status_text))], &group_key)]
        }
        AnswerNode::Nothing => Vec::new(),
    }
}

/// Whether a node is the form from the prompt that was not filled in: its texts are placeholders in angle brackets.
pub(super) fn is_blank_form(item_node: &AnswerNode) -> bool {
    let is_placeholder = |field_text: String| field_text.starts_with('<') && field_text.ends_with('>');
    let text_keys = [DESCRIPTION_KEYS, NOTE_KEYS, &["severity", "status", "verdict"]];
    text_keys.iter().any(|key_names| item_node.get_text(key_names).is_some_and(is_placeholder))
}

/// Reads the items that were found, and turns those that cannot be used into remarks.
pub(super) fn read_items(found_lists: FoundLists, answer_kind: AnswerKind) -> ParsedAnswer {
    let FoundLists { items, sibling_maps, mut remarks, .. } = found_lists;
    let item_count = items.len();
    let (content, minutes) = match answer_kind {
        AnswerKind::Findings => read_findings(&items, &sibling_maps, &mut remarks),
        AnswerKind::Fixes => (read_claims(&items, &mut remarks), PartyMinutes::default()),
        AnswerKind::Verdicts => (read_rulings(&items, &mut remarks), PartyMinutes::default()),
    };
    let (kept_count, unknown_message) = match &content {
        AnswerContent::Findings { raised } => (raised.len(), None),
        AnswerContent::Fixes { claims, unknown } => (
            claims.len(),
            Some(describe_unknown_words("status", unknown, &CLAIM_WORDS)).filter(|_| !unknown.is_empty()),
        ),
        AnswerContent::Rulings { rulings, parts, unknown } => (
            rulings.len() + parts.len(),
            Some(describe_unknown_words("verdict", unknown, &VERDICT_WORDS)).filter(|_| !unknown.is_empty()),
        ),
        // The readers above make no other content.
        _ => (0, None),
    };
    let remarks = limit_remarks(remarks);
    // A list whose items are all unusable is not the same as an empty list: the agent did raise something.
    if kept_count == 0 && item_count > 0 {
        // The agent is asked with this message, so unknown words come with those that are accepted.
        let message = unknown_message.unwrap_or_else(|| remarks.join("; "));
        return ParsedAnswer {
            content: AnswerContent::Unreadable { message },
            minutes: PartyMinutes::default(),
            remarks,
        };
    }
    ParsedAnswer { content, minutes, remarks }
}

fn limit_remarks(mut remarks: Vec<String>) -> Vec<String> {
    let dropped_count = remarks.len().saturating_sub(MAX_REMARKS);
    if dropped_count > 0 {
        remarks.truncate(MAX_REMARKS);
        remarks.push(format!("and {dropped_count} more remarks"));
    }
    remarks
}

fn read_findings(
    items: &[AnswerNode],
    sibling_maps: &[AnswerNode],
    remarks: &mut Vec<String>,
) -> (AnswerContent, PartyMinutes) {
    let ReadItems { kept_items: mut read_pairs, .. } = read_each_item(items, read_finding, remarks);
    if read_pairs.len() > MAX_ITEMS {
        add_limit_remark(remarks, read_pairs.len(), "the most severe ones");
        read_pairs = keep_most_severe(read_pairs);
    }
    let minutes = minutes::read_minutes(sibling_maps, read_pairs.iter().map(|(source_item, _)| *source_item));
    let raised = read_pairs.into_iter().map(|(_, raised)| raised).collect();
    (AnswerContent::Findings { raised }, minutes)
}

fn read_claims(items: &[AnswerNode], remarks: &mut Vec<String>) -> AnswerContent {
    let ReadItems { kept_items, mut unknown_words } = read_each_item(items, read_claim, remarks);
    let claims = keep_first_items(kept_items, remarks);
    keep_unanswered(&mut unknown_words, |finding_id| claims.iter().any(|claim| claim.id == finding_id));
    add_unknown_remarks(remarks, "status", &unknown_words);
    AnswerContent::Fixes { claims, unknown: unknown_words }
}

fn read_rulings(items: &[AnswerNode], remarks: &mut Vec<String>) -> AnswerContent {
    let parts: Vec<PartRuling> = items.iter().filter_map(read_part_ruling).take(MAX_ITEMS).collect();
    let finding_items: Vec<AnswerNode> =
        items.iter().filter(|item| find_part_number(item).is_none()).cloned().collect();
    let ReadItems { kept_items, mut unknown_words } = read_each_item(&finding_items, read_ruling, remarks);
    let rulings = merge_rulings(keep_first_items(kept_items, remarks), remarks);
    keep_unanswered(&mut unknown_words, |finding_id| rulings.iter().any(|ruling| ruling.id == finding_id));
    add_unknown_remarks(remarks, "verdict", &unknown_words);
    AnswerContent::Rulings { rulings, parts, unknown: unknown_words }
}

/// Returns the number of the part of a change that an item is about: 2 for the id `C2`.
fn find_part_number(item_node: &AnswerNode) -> Option<u32> {
    let id_text = match item_node {
        AnswerNode::Map(pairs) if pairs.len() == 1 => pairs.first()?.0.clone(),
        _ => item_node.get_text(FINDING_ID_KEYS)?,
    };
    id_text.trim().strip_prefix(['C', 'c'])?.parse().ok()
}

/// Reads what a judge says about a part of a change. A verdict that is not understood says nothing.
fn read_part_ruling(item_node: &AnswerNode) -> Option<PartRuling> {
    let part = find_part_number(item_node)?;
    let verdict_text = match item_node {
        AnswerNode::Map(pairs) if pairs.len() == 1 => match &pairs.first()?.1 {
            AnswerNode::Text(verdict_text) => verdict_text.clone(),
            nested_node => nested_node.get_text(VERDICT_KEYS)?,
        },
        _ => item_node.get_text(VERDICT_KEYS)?,
    };
    let note = truncate_chars(&item_node.get_text(NOTE_KEYS).unwrap_or_default(), MAX_TEXT_CHARS);
    Some(PartRuling { part, holds: read_verdict(&verdict_text)?, note })
}

/// Keeps one unknown word for each finding about which the answer says nothing else.
fn keep_unanswered(unknown_words: &mut Vec<UnknownWord>, is_answered: impl Fn(FindingId) -> bool) {
    let mut known_ids = std::collections::BTreeSet::new();
    unknown_words.retain(|unknown_word| !is_answered(unknown_word.id) && known_ids.insert(unknown_word.id));
    unknown_words.truncate(MAX_ITEMS);
}

fn add_unknown_remarks(remarks: &mut Vec<String>, field_name: &str, unknown_words: &[UnknownWord]) {
    remarks.extend(
        unknown_words.iter().map(|UnknownWord { id, word }| format!("unknown {field_name} `{word}` for {id}, ignored")),
    );
}

/// Adds the remark that there were too many items. It comes first, so that it is not lost when the remarks are limited.
fn add_limit_remark(remarks: &mut Vec<String>, item_count: usize, kept_part: &str) {
    remarks.insert(0, format!("kept {MAX_ITEMS} of {item_count} items, {kept_part}; the others were ignored"));
}

/// Keeps at most [`MAX_ITEMS`] items that have no rank.
fn keep_first_items<T>(read_pairs: Vec<(&AnswerNode, T)>, remarks: &mut Vec<String>) -> Vec<T> {
    if read_pairs.len() > MAX_ITEMS {
        add_limit_remark(remarks, read_pairs.len(), "the first ones");
    }
    read_pairs.into_iter().take(MAX_ITEMS).map(|(_, read_value)| read_value).collect()
}

/// Keeps the [`MAX_ITEMS`] most severe findings, in their original order.
fn keep_most_severe(all_findings: Vec<(&AnswerNode, RaisedFinding)>) -> Vec<(&AnswerNode, RaisedFinding)> {
    let mut ranked_indexes: Vec<(Severity, usize)> =
        all_findings.iter().enumerate().map(|(index, (_, raised))| (raised.severity, index)).collect();
    ranked_indexes.sort_unstable();
    ranked_indexes.truncate(MAX_ITEMS);
    let mut kept_flags = vec![false; all_findings.len()];
    for (_, index) in ranked_indexes {
        kept_flags[index] = true;
    }
    all_findings
        .into_iter()
        .zip(kept_flags)
        .filter_map(|(finding_pair, is_kept)| is_kept.then_some(finding_pair))
        .collect()
}

/// Why an item cannot be used.
enum ItemProblem {
    /// The reason, for a remark.
    Unusable(String),
    /// Its verdict or status is in no table, which the agent is asked about.
    UnknownWord(UnknownWord),
}

impl From<String> for ItemProblem {
    fn from(reason: String) -> Self {
        ItemProblem::Unusable(reason)
    }
}

impl From<&str> for ItemProblem {
    fn from(reason: &str) -> Self {
        ItemProblem::Unusable(reason.to_string())
    }
}

type ItemReader<T> = fn(&AnswerNode, &mut Vec<String>) -> Result<T, ItemProblem>;

/// The items that could be read, each with its source, and the unknown words of the others.
struct ReadItems<'n, T> {
    kept_items: Vec<(&'n AnswerNode, T)>,
    unknown_words: Vec<UnknownWord>,
}

fn read_each_item<'n, T>(
    items: &'n [AnswerNode],
    read_item: ItemReader<T>,
    remarks: &mut Vec<String>,
) -> ReadItems<'n, T> {
    let mut kept_items = Vec::new();
    let mut unknown_words = Vec::new();
    for (index, source_item) in items.iter().enumerate() {
        let item_result = match source_item {
            AnswerNode::Map(_) if is_blank_form(source_item) => Err("it is the unfilled form".into()),
            AnswerNode::Map(_) => read_item(source_item, remarks),
            _ => Err("it is not a mapping".into()),
        };
        // Of duplicate keys only one value is used; the remark says which one.
        if let Some(repeated_key) = source_item.duplicate_key() {
            remarks.push(format!(
                "item {} has `{}` twice; the later one is used",
                index + 1,
                truncate_chars(repeated_key, 40)
            ));
        }
        match item_result {
            Ok(read_value) => kept_items.push((source_item, read_value)),
            Err(ItemProblem::Unusable(reason)) => remarks.push(format!("item {} was ignored: {reason}", index + 1)),
            Err(ItemProblem::UnknownWord(unknown_word)) => unknown_words.push(unknown_word),
        }
    }
    ReadItems { kept_items, unknown_words }
}

fn read_finding(item_node: &AnswerNode, remarks: &mut Vec<String>) -> Result<RaisedFinding, ItemProblem> {
    let description = item_node.get_text(DESCRIPTION_KEYS).ok_or("it has no description")?;
    let finding_evidence = read_evidence(item_node).ok_or("it has neither `quote` nor `absent`")?;
    let finding_severity = match item_node.get_text(SEVERITY_KEYS) {
        Some(severity_text) => read_severity(&severity_text).unwrap_or_else(|| {
            // An unknown word must not make a finding lighter than the agent meant it.
            remarks.push(format!("unknown severity `{}`, treated as critical", truncate_chars(&severity_text, 40)));
            Severity::Critical
        }),
        None => {
            remarks.push("a finding has no severity, treated as medium".to_string());
            Severity::Medium
        }
    };
    Ok(RaisedFinding {
        severity: finding_severity,
        category: truncate_chars(&item_node.get_text(CATEGORY_KEYS).unwrap_or_else(|| "general".to_string()), 60),
        description: truncate_chars(&description, MAX_TEXT_CHARS),
        evidence: finding_evidence,
        file: read_file_name(item_node),
        line: read_line_number(item_node),
        suggested_fix: truncate_chars(&item_node.get_text(SUGGESTED_FIX_KEYS).unwrap_or_default(), MAX_TEXT_CHARS),
    })
}

/// Finds an id like `F3` between any other characters.
fn parse_finding_id(id_text: &str) -> Option<FindingId> {
    let mut id_words =
        id_text.split(|character: char| !character.is_alphanumeric()).filter(|name_word| !name_word.is_empty());
    id_words.find_map(FindingId::parse)
}

fn read_finding_id(item_node: &AnswerNode) -> Result<FindingId, String> {
    let id_text = item_node.get_text(FINDING_ID_KEYS).ok_or("it has no finding id")?;
    parse_finding_id(&id_text).ok_or_else(|| format!("`{}` is not a finding id", truncate_chars(&id_text, 40)))
}

/// The problem that a verdict or status is in no table.
fn unknown_word(finding_id: FindingId, answer_text: &str) -> ItemProblem {
    ItemProblem::UnknownWord(UnknownWord { id: finding_id, word: truncate_chars(answer_text, 40) })
}

fn read_claim(item_node: &AnswerNode, _: &mut Vec<String>) -> Result<FixClaim, ItemProblem> {
    let claim_id = read_finding_id(item_node)?;
    let status_text = item_node.get_text(STATUS_KEYS).ok_or_else(|| format!("it has no status for {claim_id}"))?;
    let claim_status = read_claim_status(&status_text).ok_or_else(|| unknown_word(claim_id, &status_text))?;
    Ok(FixClaim {
        id: claim_id,
        said: claim_status,
        note: truncate_chars(&item_node.get_text(NOTE_KEYS).unwrap_or_default(), MAX_TEXT_CHARS),
        verification: truncate_chars(&item_node.get_text(VERIFICATION_KEYS).unwrap_or_default(), MAX_TEXT_CHARS),
        files_modified: item_node.get(MODIFIED_FILES_KEYS).map(AnswerNode::to_texts).unwrap_or_default(),
        memory_saved: item_node
            .get_text(MEMORY_SAVED_KEYS)
            .is_some_and(|saved_text| matches_any_name(&saved_text, &["true", "yes"])),
    })
}

fn read_ruling(item_node: &AnswerNode, remarks: &mut Vec<String>) -> Result<ChallengerRuling, ItemProblem> {
    if let Some((ruling_id, verdict_value)) = single_id_pair(item_node) {
        let verdict_map = match verdict_value {
            AnswerNode::Map(pairs) => AnswerNode::Map(pairs.clone()),
            other_node => AnswerNode::Map(vec![("verdict".to_string(), other_node.clone())]),
        };
        return build_ruling(ruling_id, &verdict_map, remarks);
    }
    build_ruling(read_finding_id(item_node)?, item_node, remarks)
}

/// Builds a ruling. A denial with neither a note nor a counter-quote counts as ambiguous; an unknown word is not a
/// ruling.
fn build_ruling(
    ruling_id: FindingId,
    item_node: &AnswerNode,
    remarks: &mut Vec<String>,
) -> Result<ChallengerRuling, ItemProblem> {
    let verdict_text = item_node.get_text(VERDICT_KEYS).ok_or_else(|| format!("it has no verdict on {ruling_id}"))?;
    let note = truncate_chars(&item_node.get_text(NOTE_KEYS).unwrap_or_default(), MAX_TEXT_CHARS);
    let counter_evidence =
        item_node.get(COUNTER_EVIDENCE_KEYS).and_then(first_text).map(truncate_quote).unwrap_or_default();
    let mut verdict = read_verdict(&verdict_text).ok_or_else(|| unknown_word(ruling_id, &verdict_text))?;
    if verdict == ChallengeVerdict::Invalid && note.is_empty() && counter_evidence.is_empty() {
        remarks.push(format!("{ruling_id} was called invalid without counter-evidence, treated as ambiguous"));
        verdict = ChallengeVerdict::Ambiguous;
    }
    Ok(ChallengerRuling { id: ruling_id, holds: verdict, note, counter: counter_evidence })
}

/// Keeps one ruling for each finding. Contradicting rulings on the same finding leave it in doubt.
fn merge_rulings(rulings: Vec<ChallengerRuling>, remarks: &mut Vec<String>) -> Vec<ChallengerRuling> {
    let mut index_by_finding: std::collections::BTreeMap<FindingId, usize> = std::collections::BTreeMap::new();
    let mut kept_rulings: Vec<ChallengerRuling> = Vec::new();
    for ruling in rulings {
        match index_by_finding.get(&ruling.id).and_then(|kept_index| kept_rulings.get_mut(*kept_index)) {
            None => {
                index_by_finding.insert(ruling.id, kept_rulings.len());
                kept_rulings.push(ruling);
            }
            Some(first_ruling) if first_ruling.holds != ruling.holds => {
                remarks.push(format!(
                    "{} was called {} and {}, treated as ambiguous",
                    first_ruling.id, first_ruling.holds, ruling.holds
                ));
                first_ruling.holds = ChallengeVerdict::Ambiguous;
            }
            Some(_) => {}
        }
    }
    kept_rulings
}
