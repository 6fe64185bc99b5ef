//! Requirements by their ids, `FR1` or `FR-1`, and which epic covers which, by the file's own map.
//!
//! The same readers serve a PRD, whose requirements are headings in late eras.

use serde::Serialize;

use crate::page::{Line, Page, plain};

/// One requirement and where it is defined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Requirement {
    /// The id: `FR1`, `NFR2`, `UX-DR3`; `FR-1` is read as `FR1`.
    pub id: String,
    pub text: String,
    pub path: String,
    pub line: usize,
}

/// One line of the coverage map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    pub requirement: String,
    pub epics: Vec<u32>,
    pub path: String,
    pub line: usize,
}

/// Reads the requirements inventory and the coverage map of one file of epics.
pub(super) fn gather(path: &str, page: &Page<'_>, all: &mut Vec<Requirement>, map: &mut Vec<Coverage>) {
    for section in page.sections() {
        let lines = &page.lines[section.lines.clone()];
        let title = plain(section.title);
        if title.contains("coverage map") {
            map.extend(lines.iter().filter(|line| line.is_prose()).flat_map(|line| covered(path, line)));
        } else if title == "requirements inventory" {
            // The coverage map is often a subsection of the inventory, and its lines would look like definitions.
            let map = page.sections().into_iter().find(|other| {
                plain(other.title).contains("coverage map") && section.lines.contains(&other.heading)
            });
            let end = map.map_or(section.lines.end, |map| map.heading);
            all.extend(defined(path, &page.lines[section.lines.start..end]));
        }
    }
}

/// The requirements that a document defines: `FR1: …`, `- **FR1:** …`, `#### FR-1: …`, `| FR1 | … |`.
pub fn inventory(path: &str, text: &str) -> Vec<Requirement> {
    defined(path, &Page::of(text).lines)
}

fn defined(path: &str, lines: &[Line<'_>]) -> Vec<Requirement> {
    let mut seen = std::collections::BTreeSet::new();
    let mut found = Vec::new();
    for line in lines.iter().filter(|line| line.is_prose()) {
        let start = line.text.trim_start_matches(['#', '-', '*', '+', '|', '>', '_', '[', '`', ' ', '\t']);
        let Some((id, rest)) = id_at(start) else { continue };
        // A sentence that begins with an id defines nothing.
        let behind = rest.trim_start_matches(['*', '_', ']', '`', ' ']);
        let marked = behind.strip_prefix([':', '|', '.', '-', '–', '—', '(']);
        // An id in bold at the start of a list item is a definition: `- **FR7** x`.
        let is_item = ["- **", "* **", "+ **"].iter().any(|start| line.text.trim_start().starts_with(start));
        let apart = (is_item && rest.starts_with("**")).then_some(behind);
        let Some(text) = marked.or(apart).filter(|text| !text.trim().is_empty() || marked.is_some()) else {
            continue;
        };
        // The first definition counts; later ones are references.
        if seen.insert(id.clone()) {
            let text = text.trim_matches(['*', '_', '|', ':', ' ']).to_string();
            found.push(Requirement { id, text, path: path.to_string(), line: line.number });
        }
    }
    found
}

/// Parses a line of the map: `FR1: Epic 1 - …`, `| FR1 | Epic 1 |`, `- FR1, FR2 → Epics 2 and 3`.
fn covered(path: &str, line: &Line<'_>) -> Vec<Coverage> {
    let lower = line.text.to_ascii_lowercase();
    // The ids stand before the word `epic`, the numbers of the epics behind it.
    let (before, after) = line.text.split_at(lower.find("epic").unwrap_or(line.text.len()));
    let mut epics = Vec::new();
    let mut rest = after;
    // The numbers of `Epic 1` and `Epics 2, 3 and 4` count; a number in a description does not.
    while let Some(at) = rest.to_ascii_lowercase().find("epic").filter(|_| epics.len() < 100) {
        rest = rest[at + 4..].trim_start_matches(['s', 'S', ' ', ':']);
        loop {
            let tail = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            let Ok(number) = rest[..rest.len() - tail.len()].parse::<u32>() else { break };
            epics.push(number);
            let next = tail.trim_start_matches([',', '&', '+', ' ']);
            let next = next.strip_prefix("and ").unwrap_or(next);
            if next.len() == tail.len() || !next.starts_with(|c: char| c.is_ascii_digit()) {
                rest = tail;
                break;
            }
            rest = next;
        }
        // One pass over a line is enough: a long line is no map.
        if rest.len() > 2_000 {
            break;
        }
    }
    epics.dedup();
    let ids = ids_in(before);
    let made = ids.into_iter().map(|requirement| Coverage {
        requirement,
        epics: epics.clone(),
        path: path.to_string(),
        line: line.number,
    });
    made.collect()
}

/// Every id in a text, in order, each once; `FR1-FR3`, `FR1 to FR3` and `FR1-3` are three ids.
pub fn ids_in(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut last: Option<Seen> = None;
    let mut at = 0;
    let mut inside_word = false;
    while let Some(first) = text[at..].chars().next() {
        // An id must not continue a word, as in `xFR1`.
        let here = (!inside_word).then(|| id_parts(&text[at..])).flatten();
        let Some((kind, number, behind)) = here else {
            inside_word = first.is_alphanumeric();
            at += first.len_utf8();
            continue;
        };
        // A range mark between two ids of one kind includes the ids between them. Ranges are limited, since
        // `FR1-FR4000000000` would fill the memory.
        let from = last.take().filter(|seen| {
            let between = text[seen.end..at].trim();
            seen.kind == kind && is_range(between) && seen.number < number && number - seen.number < 100
        });
        let from = from.map_or(number, |seen| seen.number + 1);
        let (to, behind) =
            range_end(behind).filter(|(to, _)| *to > number && to - number < 100).unwrap_or((number, behind));
        let new = (from..=to).filter(|between| seen.insert((kind, *between)));
        found.extend(new.map(|between| format!("{kind}{between}")));
        at = text.len() - behind.len();
        last = Some(Seen { kind, number: to, end: at });
        // Behind an id the scan is still inside a word until another character comes.
        inside_word = true;
    }
    found
}

/// The id that was found last.
struct Seen {
    kind: &'static str,
    number: u32,
    /// The offset of the byte behind it.
    end: usize,
}

fn is_range(between: &str) -> bool {
    matches!(between, "-" | "–" | "—" | "…" | ".." | "..." | "to" | "through")
}

fn range_end(behind: &str) -> Option<(u32, &str)> {
    let rest = behind.strip_prefix(['-', '–'])?;
    let tail = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = rest[..rest.len() - tail.len()].parse().ok()?;
    Some((number, tail))
}

fn id_at(text: &str) -> Option<(String, &str)> {
    let (kind, number, rest) = id_parts(text)?;
    Some((format!("{kind}{number}"), rest))
}

/// Parses `FR12`, `FR-12`, `NFR3` or `UX-DR4`, and returns the text behind it.
fn id_parts(text: &str) -> Option<(&'static str, u32, &str)> {
    // `NFR` comes before `FR`, since the first prefix that fits is taken.
    const KINDS: [&str; 4] = ["NFR", "UX-DR", "FR", "CAP"];
    let kind = KINDS.into_iter().find(|kind| text.starts_with(kind))?;
    let rest = &text[kind.len()..];
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let tail = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = rest[..rest.len() - tail.len()].parse().ok()?;
    (!tail.starts_with(|c: char| c.is_alphabetic())).then_some((kind, number, tail))
}
