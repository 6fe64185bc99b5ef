//! Reads what a party reports in addition to its findings: who took part, how they voted, what they agreed on and
//! what not. All of it is optional, and none of it is asked for again if it is missing.

use tribunal_engine::text::truncate_chars;
use tribunal_workflows::tasks::{
    answer_words::read_severity,
    party_minutes::{PartyMinutes, SeverityBallot, SeverityVote},
};

use super::node::AnswerNode;

const PERSONA_LIST_KEYS: &[&str] = &["personas", "participants"];
const CONSENSUS_KEYS: &[&str] = &["consensus", "agreement"];
const DISSENT_KEYS: &[&str] = &["dissent", "disagreement"];
const VOTE_LIST_KEYS: &[&str] = &["votes", "vote"];
const PERSONA_KEYS: &[&str] = &["persona", "name", "by", "voter", "who"];
const VOTE_SEVERITY_KEYS: &[&str] = &["severity", "vote"];
/// A party is small; more votes or names are noise.
const MAX_VOTES: usize = 12;
const MAX_STATEMENT_CHARS: usize = 1_000;

/// Reads the minutes from the pairs next to the list, and the ballots from its items.
pub(super) fn read_minutes<'n>(
    sibling_maps: &[AnswerNode],
    finding_items: impl Iterator<Item = &'n AnswerNode>,
) -> PartyMinutes {
    let find_value = |key_names: &[&str]| sibling_maps.iter().find_map(|sibling_map| sibling_map.get(key_names));
    let find_statement = |key_names: &[&str]| find_value(key_names).and_then(read_statement).unwrap_or_default();
    let ballots = finding_items.enumerate().filter_map(|(index, finding_item)| read_ballot(index, finding_item));
    PartyMinutes {
        personas: find_value(PERSONA_LIST_KEYS).map(read_persona_names).unwrap_or_default(),
        consensus: find_statement(CONSENSUS_KEYS),
        dissent: find_statement(DISSENT_KEYS),
        ballots: ballots.collect(),
    }
}

/// The names of the personas, as a list of names or of objects with a name.
fn read_persona_names(personas_node: &AnswerNode) -> Vec<String> {
    let all_names = match personas_node {
        AnswerNode::List(persona_items) => persona_items
            .iter()
            .filter_map(|persona_item| persona_item.to_text().or_else(|| persona_item.get_text(PERSONA_KEYS)))
            .collect(),
        other_node => other_node.to_texts(),
    };
    all_names.into_iter().take(MAX_VOTES).map(|persona_name| truncate_chars(&persona_name, 80)).collect()
}

/// Reads a statement: a text, or a map from speakers to what they said.
fn read_statement(statement_node: &AnswerNode) -> Option<String> {
    let statement = match statement_node {
        AnswerNode::Map(pairs) => {
            let statement_parts = pairs
                .iter()
                .filter_map(|(speaker, spoken_node)| Some(format!("{speaker}: {}", spoken_node.to_text()?)));
            statement_parts.collect::<Vec<_>>().join("; ")
        }
        other_node => other_node.to_text()?,
    };
    Some(truncate_chars(&statement, MAX_STATEMENT_CHARS))
}

/// Reads the votes and the dissent on one finding; `None` if the item has neither.
fn read_ballot(finding_index: usize, finding_item: &AnswerNode) -> Option<SeverityBallot> {
    let ballot_votes = finding_item.get(VOTE_LIST_KEYS).map(read_votes).unwrap_or_default();
    let ballot_dissent = finding_item.get(DISSENT_KEYS).and_then(read_statement).unwrap_or_default();
    (!ballot_votes.is_empty() || !ballot_dissent.is_empty()).then_some(SeverityBallot {
        finding: finding_index,
        votes: ballot_votes,
        dissent: ballot_dissent,
    })
}

/// Reads votes by persona, or as a list. A vote that is on no known scale is not counted.
fn read_votes(votes_node: &AnswerNode) -> Vec<SeverityVote> {
    let build_vote = |persona: &str, severity_text: &str| {
        Some(SeverityVote { persona: truncate_chars(persona, 80), severity: read_severity(severity_text)? })
    };
    let counted_votes: Vec<SeverityVote> = match votes_node {
        AnswerNode::Map(pairs) => {
            pairs.iter().filter_map(|(persona, severity_node)| build_vote(persona, &severity_node.to_text()?)).collect()
        }
        AnswerNode::List(vote_items) => vote_items
            .iter()
            .filter_map(|vote_item| {
                build_vote(&vote_item.get_text(PERSONA_KEYS)?, &vote_item.get_text(VOTE_SEVERITY_KEYS)?)
            })
            .collect(),
        AnswerNode::Text(_) | AnswerNode::Nothing => Vec::new(),
    };
    counted_votes.into_iter().take(MAX_VOTES).collect()
}
