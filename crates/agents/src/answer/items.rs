//! Reads the items of an answer's list as findings, claims and rulings: severity scales, ids and verdicts. What a
//! finding rests on is read by [`evidence`].

mod evidence;

use tribunal_core::{
    brief::{AnswerContent, ChallengeVerdict, ChallengerRuling, ClaimStatus, FixClaim, PartyMinutes, RaisedFinding},
    finding::Severity,
    ids::FindingId,
    text::truncate_chars,
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
        AnswerKind::Fixes => {
            let claims =
                read_each_item(&items, read_claim, &mut remarks).into_iter().map(|(_, fix_claim)| fix_claim).collect();
            (AnswerContent::Fixes { claims: limit_items(claims, |_| 0, &mut remarks) }, PartyMinutes::default())
        }
        AnswerKind::Verdicts => {
            let rulings = read_each_item(&items, read_ruling, &mut remarks)
                .into_iter()
                .map(|(_, finding_ruling)| finding_ruling)
                .collect();
            let rulings = limit_items(rulings, |_| 0, &mut remarks);
            (AnswerContent::Rulings { rulings: merge_rulings(rulings, &mut remarks) }, PartyMinutes::default())
        }
    };
    let kept_count = match &content {
        AnswerContent::Findings { raised } => raised.len(),
        AnswerContent::Fixes { claims } => claims.len(),
        AnswerContent::Rulings { rulings } => rulings.len(),
        AnswerContent::Unreadable { .. } => 0,
    };
    let remarks = limit_remarks(remarks);
    // A list whose items are all unusable is not the same as an empty list: the agent did raise something.
    if kept_count == 0 && item_count > 0 {
        let message = remarks.join("; ");
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
    let mut read_pairs = read_each_item(items, read_finding, remarks);
    read_pairs = limit_items(read_pairs, |(_, raised)| raised.severity as usize, remarks);
    let minutes = minutes::read_minutes(sibling_maps, read_pairs.iter().map(|(source_item, _)| *source_item));
    let raised = read_pairs.into_iter().map(|(_, raised)| raised).collect();
    (AnswerContent::Findings { raised }, minutes)
}

/// Keeps at most [`MAX_ITEMS`] items, those with the lowest rank, in their original order.
fn limit_items<T>(all_items: Vec<T>, rank_item: impl Fn(&T) -> usize, remarks: &mut Vec<String>) -> Vec<T> {
    if all_items.len() <= MAX_ITEMS {
        return all_items;
    }
    // This remark comes first, so that it is not lost when the remarks are limited.
    remarks.insert(
        0,
        format!("kept {MAX_ITEMS} of {} items, the most severe ones; the others were ignored", all_items.len()),
    );
    let mut ranked_indexes: Vec<(usize, usize)> =
        all_items.iter().enumerate().map(|(index, ranked_item)| (rank_item(ranked_item), index)).collect();
    ranked_indexes.sort_unstable();
    ranked_indexes.truncate(MAX_ITEMS);
    let mut kept_flags = vec![false; all_items.len()];
    for (_, index) in ranked_indexes {
        kept_flags[index] = true;
    }
    all_items.into_iter().zip(kept_flags).filter_map(|(ranked_item, is_kept)| is_kept.then_some(ranked_item)).collect()
}

type ItemReader<T> = fn(&AnswerNode, &mut Vec<String>) -> Result<T, String>;

fn read_each_item<'n, T>(
    items: &'n [AnswerNode],
    read_item: ItemReader<T>,
    remarks: &mut Vec<String>,
) -> Vec<(&'n AnswerNode, T)> {
    let mut kept_items = Vec::new();
    for (index, source_item) in items.iter().enumerate() {
        let item_result = match source_item {
            AnswerNode::Map(_) if is_blank_form(source_item) => Err("it is the unfilled form".to_string()),
            AnswerNode::Map(_) => read_item(source_item, remarks),
            _ => Err("it is not a mapping".to_string()),
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
            Err(reason) => remarks.push(format!("item {} was ignored: {reason}", index + 1)),
        }
    }
    kept_items
}

fn read_finding(item_node: &AnswerNode, remarks: &mut Vec<String>) -> Result<RaisedFinding, String> {
    let description = item_node.get_text(DESCRIPTION_KEYS).ok_or("it has no description")?;
    let finding_evidence = read_evidence(item_node).ok_or("it has neither `quote` nor `absent`")?;
    let finding_severity = match item_node.get_text(SEVERITY_KEYS) {
        Some(severity_text) => parse_severity(&severity_text).unwrap_or_else(|| {
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

/// Finds one of the known severities in a text; of several, the most severe.
pub(super) fn parse_severity(severity_text: &str) -> Option<Severity> {
    Severity::parse(severity_text).or_else(|| {
        let severity_words = severity_text.split(|character: char| !character.is_alphabetic());
        // Severities are ordered from critical to low, so the minimum is the most severe one.
        severity_words.filter_map(Severity::parse).min()
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

fn split_words(spoken_text: &str) -> Vec<String> {
    let lowercase_words =
        spoken_text.split(|character: char| !character.is_alphanumeric()).filter(|name_word| !name_word.is_empty());
    lowercase_words.take(12).map(str::to_lowercase).collect()
}

fn read_claim(item_node: &AnswerNode, _: &mut Vec<String>) -> Result<FixClaim, String> {
    let claim_id = read_finding_id(item_node)?;
    let status_text = item_node.get_text(STATUS_KEYS).unwrap_or_default();
    let status_words = split_words(&status_text);
    let says_word = |status_word: &str| status_words.iter().any(|known_word| known_word == status_word);
    let negations = ["not", "partially", "partly", "cannot", "un", "will", "to", "almost", "nearly"];
    let done_index =
        status_words.iter().position(|status_word| ["fixed", "resolved", "done"].contains(&status_word.as_str()));
    // Only a word before `done` negates it: `done; will need a note` is done.
    let is_negated = |word_index: usize| {
        status_words[..word_index].iter().any(|status_word| negations.contains(&status_word.as_str()))
    };
    let claim_status = match done_index {
        // "Blocked" wins over "fixed": `fixed in part, blocked by X` needs a decision.
        _ if says_word("blocked") => ClaimStatus::Blocked,
        Some(word_index) if !is_negated(word_index) => ClaimStatus::Fixed,
        _ => {
            let status_text = truncate_chars(&status_text.to_uppercase(), 40);
            return Err(format!("status `{status_text}` is neither FIXED nor BLOCKED"));
        }
    };
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

fn read_ruling(item_node: &AnswerNode, remarks: &mut Vec<String>) -> Result<ChallengerRuling, String> {
    if let Some((ruling_id, verdict_value)) = single_id_pair(item_node) {
        let verdict_map = match verdict_value {
            AnswerNode::Map(pairs) => AnswerNode::Map(pairs.clone()),
            other_node => AnswerNode::Map(vec![("verdict".to_string(), other_node.clone())]),
        };
        return build_ruling(ruling_id, &verdict_map, remarks);
    }
    build_ruling(read_finding_id(item_node)?, item_node, remarks)
}

/// Builds a ruling. An unknown word, or a denial with neither a note nor a counter-quote, counts as ambiguous.
fn build_ruling(
    ruling_id: FindingId,
    item_node: &AnswerNode,
    remarks: &mut Vec<String>,
) -> Result<ChallengerRuling, String> {
    let verdict_text = item_node.get_text(VERDICT_KEYS).ok_or_else(|| format!("it has no verdict on {ruling_id}"))?;
    let note = truncate_chars(&item_node.get_text(NOTE_KEYS).unwrap_or_default(), MAX_TEXT_CHARS);
    let counter_evidence =
        item_node.get(COUNTER_EVIDENCE_KEYS).and_then(first_text).map(truncate_quote).unwrap_or_default();
    let mut verdict = parse_verdict(&verdict_text).unwrap_or_else(|| {
        remarks.push(format!(
            "unknown verdict `{}` on {ruling_id}, treated as ambiguous",
            truncate_chars(&verdict_text, 40)
        ));
        ChallengeVerdict::Ambiguous
    });
    if verdict == ChallengeVerdict::Invalid && note.is_empty() && counter_evidence.is_empty() {
        remarks.push(format!("{ruling_id} was called invalid without counter-evidence, treated as ambiguous"));
        verdict = ChallengeVerdict::Ambiguous;
    }
    Ok(ChallengerRuling { id: ruling_id, holds: verdict, note, counter: counter_evidence })
}

fn parse_verdict(verdict_text: &str) -> Option<ChallengeVerdict> {
    let verdict_words = split_words(verdict_text);
    let says_any =
        |known_words: &[&str]| verdict_words.iter().any(|verdict_word| known_words.contains(&verdict_word.as_str()));
    let (is_valid, is_invalid) =
        (says_any(&["valid", "confirmed", "upheld"]), says_any(&["invalid", "rejected", "refuted"]));
    // The arms are tried in order: doubt and contradictions come before any clear verdict.
    match (is_valid, is_invalid, says_any(&["not"])) {
        _ if says_any(&["ambiguous", "unclear", "unsure", "uncertain", "undecided"]) => {
            Some(ChallengeVerdict::Ambiguous)
        }
        (true, true, _) | (false, true, true) => Some(ChallengeVerdict::Ambiguous),
        (true, false, false) => Some(ChallengeVerdict::Valid),
        (false, true, false) | (true, false, true) => Some(ChallengeVerdict::Invalid),
        (false, false, _) => None,
    }
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
