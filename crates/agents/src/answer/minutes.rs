//! Reads what a party reports in addition to its findings: who took part, how they voted, what they agreed on and
//! what not. All of it is optional, and none of it is asked for again if it is missing.

use tribunal_core::{
    brief::{Ballot, Minutes, Vote},
    text::cut,
};

use super::{items::severity, node::Node};

const PERSONAS: &[&str] = &["personas", "participants"];
const CONSENSUS: &[&str] = &["consensus", "agreement"];
const DISSENT: &[&str] = &["dissent", "disagreement"];
const VOTES: &[&str] = &["votes", "vote"];
const PERSONA: &[&str] = &["persona", "name", "by", "voter", "who"];
const SEVERITY: &[&str] = &["severity", "vote"];
/// A party is small; more votes are noise.
const MOST_VOTES: usize = 12;
const MOST_CHARS: usize = 1_000;

/// Reads the minutes from the pairs next to the list, and the ballots from its items.
pub(super) fn of<'n>(beside: &[Node], items: impl Iterator<Item = &'n Node>) -> Minutes {
    let said = |names: &[&str]| beside.iter().find_map(|node| node.get(names));
    let text = |names: &[&str]| said(names).and_then(told).unwrap_or_default();
    let ballots = items.enumerate().filter_map(|(index, item)| ballot(index, item));
    Minutes {
        personas: said(PERSONAS).map(names).unwrap_or_default(),
        consensus: text(CONSENSUS),
        dissent: text(DISSENT),
        ballots: ballots.collect(),
    }
}

/// The names of the personas, as a list of names or of objects with a name.
fn names(node: &Node) -> Vec<String> {
    let all = match node {
        Node::List(items) => {
            items.iter().filter_map(|item| item.scalar().or_else(|| item.text(PERSONA))).collect()
        }
        other => other.texts(),
    };
    all.into_iter().take(MOST_VOTES).map(|name| cut(&name, 80)).collect()
}

/// Reads a statement: a text, or a map from speakers to what they said.
fn told(node: &Node) -> Option<String> {
    let text = match node {
        Node::Map(pairs) => {
            let parts = pairs.iter().filter_map(|(key, value)| Some(format!("{key}: {}", value.scalar()?)));
            parts.collect::<Vec<_>>().join("; ")
        }
        other => other.scalar()?,
    };
    Some(cut(&text, MOST_CHARS))
}

/// Reads the votes and the dissent on one finding; `None` if the item has neither.
fn ballot(finding: usize, item: &Node) -> Option<Ballot> {
    let votes = item.get(VOTES).map(votes).unwrap_or_default();
    let dissent = item.get(DISSENT).and_then(told).unwrap_or_default();
    (!votes.is_empty() || !dissent.is_empty()).then_some(Ballot { finding, votes, dissent })
}

/// Reads votes by persona, or as a list. A vote that is on no known scale is not counted.
fn votes(node: &Node) -> Vec<Vote> {
    let vote =
        |persona: &str, said: &str| Some(Vote { persona: cut(persona, 80), severity: severity(said)? });
    let votes: Vec<Vote> = match node {
        Node::Map(pairs) => {
            pairs.iter().filter_map(|(persona, said)| vote(persona, &said.scalar()?)).collect()
        }
        Node::List(items) => {
            items.iter().filter_map(|item| vote(&item.text(PERSONA)?, &item.text(SEVERITY)?)).collect()
        }
        Node::Text(_) | Node::Nothing => Vec::new(),
    };
    votes.into_iter().take(MOST_VOTES).collect()
}
