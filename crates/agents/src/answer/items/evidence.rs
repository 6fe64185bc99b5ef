//! Reads what a finding rests on, and where: its quote or the absence that it states, its file and its line.

use tribunal_engine::text::truncate_chars;
use tribunal_workflows::findings::finding::Evidence;

use super::MAX_TEXT_CHARS;
use crate::answer::{
    node::AnswerNode,
    vocabulary::{
        ABSENCE_KEYS, EVIDENCE_KEYS, FILE_KEYS, HEADING_KEYS, LINE_KEYS, LOCATION_KEYS, QUOTE_KEYS, TERM_KEYS,
    },
};

/// Reads the evidence of a finding: a quote, or an absence under a heading.
pub(super) fn read_evidence(item_node: &AnswerNode) -> Option<Evidence> {
    // An exact quote is the strongest evidence and comes before everything else.
    if let Some(quote_text) = item_node.get(QUOTE_KEYS).and_then(first_text) {
        return Some(Evidence::Quote { text: truncate_quote(quote_text) });
    }
    if let Some(absence_evidence) = item_node.get(ABSENCE_KEYS).and_then(read_absence) {
        return Some(absence_evidence);
    }
    match item_node.get(EVIDENCE_KEYS) {
        Some(AnswerNode::List(list_items)) => {
            // Evidence may be a list of typed entries or of plain quotes.
            let find_scalar = || list_items.iter().find_map(AnswerNode::to_text);
            list_items
                .iter()
                .find_map(read_evidence)
                .or_else(|| Some(Evidence::Quote { text: truncate_quote(find_scalar()?) }))
        }
        Some(inner_node @ AnswerNode::Map(_)) => read_evidence(inner_node).or_else(|| read_absence(inner_node)),
        Some(evidence_value) => {
            evidence_value.to_text().map(|quote_text| Evidence::Quote { text: truncate_quote(quote_text) })
        }
        None if item_node.has_any(TERM_KEYS) => read_absence(item_node),
        None => None,
    }
}

/// The first text of a list, or the text itself.
pub(super) fn first_text(item_node: &AnswerNode) -> Option<String> {
    match item_node {
        AnswerNode::List(list_items) => list_items.iter().find_map(AnswerNode::to_text),
        other_node => other_node.to_text(),
    }
}

fn read_absence(item_node: &AnswerNode) -> Option<Evidence> {
    let absence_terms = item_node.get(TERM_KEYS).map(AnswerNode::to_texts).unwrap_or_default();
    Some(Evidence::Absence { heading: truncate_chars(&item_node.get_text(HEADING_KEYS)?, 300), terms: absence_terms })
}

/// Cuts a long quote without an ellipsis: its beginning can still be found in the subject, a changed text could not.
pub(super) fn truncate_quote(quote_text: String) -> String {
    match quote_text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((cut_position, _)) => quote_text[..cut_position].to_string(),
        None => quote_text,
    }
}

/// The file that a finding names, either by itself or in front of the line in a location.
pub(super) fn read_file_name(item_node: &AnswerNode) -> Option<String> {
    let file_text = item_node.get_text(FILE_KEYS).or_else(|| {
        let location_text = item_node.get_text(LOCATION_KEYS)?;
        let file_name =
            location_text.split([':', '#', ' ', ',']).next().unwrap_or_default().trim_matches('`').to_string();
        // A location may also be a section title; only something like a path is a file.
        (file_name.contains('/') || file_name.contains('.')).then_some(file_name)
    })?;
    // `src/a.rs:12` includes the line number.
    let file_name = file_text.trim().trim_matches('`');
    let file_name = match file_name.rsplit_once(':') {
        Some((file_name, line_suffix)) if line_suffix.starts_with(|c: char| c.is_ascii_digit()) => file_name,
        _ => file_name,
    };
    (!file_name.is_empty()).then(|| truncate_chars(file_name, 300))
}

/// The line that a finding names, by itself, behind its file, or in a location.
pub(super) fn read_line_number(item_node: &AnswerNode) -> Option<u32> {
    let parse_digits = |digit_text: &str| -> Option<u32> {
        let digits_start = digit_text.find(|character: char| character.is_ascii_digit())?;
        let number_text: String = digit_text[digits_start..].chars().take_while(char::is_ascii_digit).collect();
        number_text.parse().ok()
    };
    if let Some(place_text) = item_node.get_text(LINE_KEYS) {
        // In a range such as `a.md:7-9`, the first number is the line.
        return parse_digits(place_text.rsplit(':').next().unwrap_or(&place_text));
    }
    if let Some((_, line_suffix)) = item_node
        .get_text(FILE_KEYS)
        .as_deref()
        .and_then(|file_text| file_text.trim().trim_matches('`').rsplit_once(':'))
    {
        return parse_digits(line_suffix);
    }
    // A location can be `a.rs:12`, `a.rs, line 12` or `a.rs#L12`.
    let place_text = item_node.get_text(LOCATION_KEYS)?.to_lowercase();
    let (_, number_text) = place_text
        .rsplit_once(':')
        .or_else(|| place_text.rsplit_once("line"))
        .or_else(|| place_text.rsplit_once('#'))?;
    let number_text = number_text.trim_start().trim_start_matches(['l', '#', 's', ' ']);
    number_text.starts_with(|character: char| character.is_ascii_digit()).then(|| parse_digits(number_text)).flatten()
}
