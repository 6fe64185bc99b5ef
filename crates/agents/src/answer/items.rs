//! Reads the items of an answer's list as findings, claims and rulings: synonyms of names, severity scales, ids and
//! evidence.

use tribunal_core::{
    brief::{Claim, Content, Holds, Minutes, Raised, Ruling, Said},
    finding::{Evidence, Severity},
    ids::FindingId,
    text::cut,
};

use super::{
    Found, MOST_ITEMS, MOST_REMARKS, Parsed, Wanted, minutes,
    node::{Node, is_one_of},
    walk::Names,
};

const DESCRIPTION: &[&str] = &["description", "issue", "problem", "title", "message", "summary", "finding"];
const SEVERITY: &[&str] = &["severity", "priority", "level"];
const CATEGORY: &[&str] = &["category", "type", "kind", "area"];
const QUOTE: &[&str] = &["quote", "exactquote", "quotedtext", "quotation", "excerpt", "snippet"];
const ABSENT: &[&str] = &["absent", "absence", "missing"];
const EVIDENCE: &[&str] = &["evidence", "proof"];
const HEADING: &[&str] = &["heading", "section", "under"];
const TERMS: &[&str] = &["terms", "term", "words", "searched", "searchedfor"];
const LINE: &[&str] = &["line", "lines", "linenumber", "startline"];
const LOCATION: &[&str] = &["location", "place", "where", "position"];
const FILE: &[&str] = &["file", "path", "filename", "filepath"];
const FIX: &[&str] = &["suggestedfix", "fix", "suggestion", "recommendation", "remedy", "proposedfix"];
const ID: &[&str] = &["id", "finding", "findingid", "issue", "issueid"];
const STATUS: &[&str] = &["status", "result", "state"];
const NOTE: &[&str] =
    &["fixdescription", "description", "reason", "note", "explanation", "because", "comment"];
const VERIFICATION: &[&str] = &["verification", "verified", "check"];
const FILES: &[&str] = &["filesmodified", "files", "fileschanged", "modifiedfiles"];
const MEMORY: &[&str] = &["memorysaved", "savedtomemory"];
const RULING: &[&str] = &["verdict", "ruling", "judgement", "judgment", "status", "result", "validity"];
const COUNTER: &[&str] = &["counterevidence", "counter", "counterquote", "quote", "evidence"];

pub(super) const FINDINGS: Names = Names {
    lists: &["findings", "issues", "problems", "finding", "issuesfound"],
    keys: &[
        "description",
        "issue",
        "problem",
        "title",
        "message",
        "summary",
        "severity",
        "priority",
        "category",
        "quote",
        "exactquote",
        "excerpt",
        "snippet",
        "absent",
        "absence",
        "missing",
        "evidence",
        "heading",
        "terms",
        "file",
        "path",
        "line",
        "lines",
        "location",
        "suggestedfix",
        "fix",
        "suggestion",
        "recommendation",
        "votes",
        "dissent",
        "raisedby",
        "id",
    ],
    beside: &["personas", "participants", "consensus", "dissent", "disagreement"],
};

pub(super) const FIXES: Names = Names {
    lists: &["fixes", "fixesapplied", "claims", "results"],
    keys: &[
        "id",
        "finding",
        "findingid",
        "issue",
        "issueid",
        "status",
        "fixdescription",
        "description",
        "reason",
        "note",
        "explanation",
        "verification",
        "filesmodified",
        "files",
        "memorysaved",
    ],
    beside: &[],
};

pub(super) const VERDICTS: Names = Names {
    lists: &["verdicts", "rulings", "judgements", "judgments", "challenges", "results"],
    keys: &[
        "id",
        "finding",
        "findingid",
        "issue",
        "issueid",
        "verdict",
        "ruling",
        "judgement",
        "status",
        "reason",
        "note",
        "explanation",
        "because",
        "counterevidence",
        "counter",
        "quote",
    ],
    beside: &[],
};

/// The longest text of an item, in characters.
const MOST_CHARS: usize = 4_000;

/// Whether a map is an item of this kind, regardless of where it is found.
pub(super) fn looks_like_one(node: &Node, wanted: Wanted) -> bool {
    match wanted {
        Wanted::Findings => {
            node.has(DESCRIPTION) && (node.has(QUOTE) || node.has(ABSENT) || node.has(EVIDENCE))
        }
        Wanted::Fixes => node.has(ID) && node.has(STATUS),
        Wanted::Verdicts => (node.has(ID) && node.has(RULING)) || keyed_by_id(node).is_some(),
    }
}

/// Returns the pair of a map like `F3: VALID` that has nothing else in it.
fn keyed_by_id(node: &Node) -> Option<(FindingId, &Node)> {
    match node {
        Node::Map(pairs) if pairs.len() == 1 => {
            let (key, value) = pairs.first()?;
            Some((finding_id(key)?, value))
        }
        _ => None,
    }
}

/// Turns the value under a list's name into items: a list, a single item instead of a list, or a map of items by id
/// or severity.
pub(super) fn of_list(value: Node, wanted: Wanted) -> Option<Vec<Node>> {
    match value {
        Node::List(items) => Some(items),
        Node::Map(pairs) => {
            let node = Node::Map(pairs);
            // A map that is an item itself must not be taken for a map of items.
            if looks_like_one(&node, wanted) || is_form(&node) {
                return Some(vec![node]);
            }
            let Node::Map(pairs) = node else { return None };
            let items: Vec<Node> = pairs.into_iter().flat_map(|(key, value)| below(key, value)).collect();
            (!items.is_empty()).then_some(items)
        }
        Node::Text(_) | Node::Nothing => None,
    }
}

/// The items under one key of a map, with the key as their id or severity.
fn below(key: String, value: Node) -> Vec<Node> {
    let with = |name: &str, mut pairs: Vec<(String, Node)>, key: &str| {
        // The last value of a key counts, so that the item's own value overrides this one.
        pairs.insert(0, (name.to_string(), Node::Text(key.to_string())));
        Node::Map(pairs)
    };
    match value {
        Node::Map(pairs) => vec![with("id", pairs, &key)],
        Node::List(items) => {
            let items = items.into_iter().map(|item| match item {
                Node::Map(pairs) if Severity::parse(&key).is_some() => with("severity", pairs, &key),
                other => other,
            });
            items.collect()
        }
        Node::Text(text) => vec![with("id", vec![("status".to_string(), Node::Text(text))], &key)],
        Node::Nothing => Vec::new(),
    }
}

/// Whether a node is the form from the prompt that was not filled in: its texts are placeholders in angle brackets.
pub(super) fn is_form(node: &Node) -> bool {
    let blank = |text: String| text.starts_with('<') && text.ends_with('>');
    let said = [DESCRIPTION, NOTE, &["severity", "status", "verdict"]];
    said.iter().any(|names| node.text(names).is_some_and(blank))
}

/// Reads the items that were found, and turns those that cannot be used into remarks.
pub(super) fn read(found: Found, wanted: Wanted) -> Parsed {
    let Found { items, beside, mut remarks, .. } = found;
    let number = items.len();
    let (content, minutes) = match wanted {
        Wanted::Findings => findings(&items, &beside, &mut remarks),
        Wanted::Fixes => {
            let claims = each(&items, claim, &mut remarks).into_iter().map(|(_, claim)| claim).collect();
            (Content::Fixes { claims: bounded(claims, |_| 0, &mut remarks) }, Minutes::default())
        }
        Wanted::Verdicts => {
            let rulings = each(&items, ruling, &mut remarks).into_iter().map(|(_, ruling)| ruling).collect();
            let rulings = bounded(rulings, |_| 0, &mut remarks);
            (Content::Rulings { rulings: agreed(rulings, &mut remarks) }, Minutes::default())
        }
    };
    let kept = match &content {
        Content::Findings { raised } => raised.len(),
        Content::Fixes { claims } => claims.len(),
        Content::Rulings { rulings } => rulings.len(),
        Content::Unreadable { .. } => 0,
    };
    let remarks = few(remarks);
    // A list whose items are all unusable is not the same as an empty list: the agent did raise something.
    if kept == 0 && number > 0 {
        let message = remarks.join("; ");
        return Parsed { content: Content::Unreadable { message }, minutes: Minutes::default(), remarks };
    }
    Parsed { content, minutes, remarks }
}

fn few(mut remarks: Vec<String>) -> Vec<String> {
    let more = remarks.len().saturating_sub(MOST_REMARKS);
    if more > 0 {
        remarks.truncate(MOST_REMARKS);
        remarks.push(format!("and {more} more remarks"));
    }
    remarks
}

fn findings(items: &[Node], beside: &[Node], remarks: &mut Vec<String>) -> (Content, Minutes) {
    let mut read = each(items, finding, remarks);
    read = bounded(read, |(_, raised)| raised.severity as usize, remarks);
    let minutes = minutes::of(beside, read.iter().map(|(item, _)| *item));
    let raised = read.into_iter().map(|(_, raised)| raised).collect();
    (Content::Findings { raised }, minutes)
}

/// Keeps at most [`MAX_ITEMS`] items, those with the lowest rank, in their original order.
fn bounded<T>(all: Vec<T>, rank: impl Fn(&T) -> usize, remarks: &mut Vec<String>) -> Vec<T> {
    if all.len() <= MOST_ITEMS {
        return all;
    }
    // This remark comes first, so that it is not lost when the remarks are limited.
    remarks.insert(
        0,
        format!("of {} items {MOST_ITEMS} were kept, the most severe; the others were left out", all.len()),
    );
    let mut order: Vec<(usize, usize)> =
        all.iter().enumerate().map(|(index, one)| (rank(one), index)).collect();
    order.sort_unstable();
    order.truncate(MOST_ITEMS);
    let mut kept = vec![false; all.len()];
    for (_, index) in order {
        kept[index] = true;
    }
    all.into_iter().zip(kept).filter_map(|(one, kept)| kept.then_some(one)).collect()
}

type Reader<T> = fn(&Node, &mut Vec<String>) -> Result<T, String>;

fn each<'n, T>(items: &'n [Node], read: Reader<T>, remarks: &mut Vec<String>) -> Vec<(&'n Node, T)> {
    let mut kept = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let result = match item {
            Node::Map(_) if is_form(item) => Err("it is the form, not an answer".to_string()),
            Node::Map(_) => read(item, remarks),
            _ => Err("it is not a mapping".to_string()),
        };
        // Duplicate keys are legal in JSON and often a mistake of the model; the reader should know which value was
        // used.
        if let Some(key) = item.doubled() {
            remarks.push(format!("item {} says `{}` twice; the later one counts", index + 1, cut(key, 40)));
        }
        match result {
            Ok(one) => kept.push((item, one)),
            Err(why) => remarks.push(format!("item {} was left out: {why}", index + 1)),
        }
    }
    kept
}

fn finding(node: &Node, remarks: &mut Vec<String>) -> Result<Raised, String> {
    let description = node.text(DESCRIPTION).ok_or("it has no description")?;
    let evidence = evidence(node).ok_or("it has neither a quote nor an absence")?;
    let severity = match node.text(SEVERITY) {
        Some(word) => severity(&word).unwrap_or_else(|| {
            // An agent that invents its own word for a severity rarely means that the problem is harmless.
            remarks.push(format!("severity `{}` is unknown and was taken as critical", cut(&word, 40)));
            Severity::Critical
        }),
        None => {
            remarks.push("a finding without a severity was taken as medium".to_string());
            Severity::Medium
        }
    };
    Ok(Raised {
        severity,
        category: cut(&node.text(CATEGORY).unwrap_or_else(|| "general".to_string()), 60),
        description: cut(&description, MOST_CHARS),
        evidence,
        file: file(node),
        line: line(node),
        suggested_fix: cut(&node.text(FIX).unwrap_or_default(), MOST_CHARS),
    })
}

/// Finds one of the known severities in a text; of several, the most severe.
pub(super) fn severity(said: &str) -> Option<Severity> {
    Severity::parse(said).or_else(|| {
        let words = said.split(|c: char| !c.is_alphabetic());
        // Severities are ordered from critical to low, so that the minimum is the most severe one.
        words.filter_map(Severity::parse).min()
    })
}

fn evidence(node: &Node) -> Option<Evidence> {
    // An exact quote is the strongest evidence and comes before everything else.
    if let Some(quote) = node.get(QUOTE).and_then(first_text) {
        return Some(Evidence::Quote { text: beginning(quote) });
    }
    if let Some(absent) = node.get(ABSENT).and_then(absence) {
        return Some(absent);
    }
    match node.get(EVIDENCE) {
        Some(Node::List(inner)) => {
            // Evidence may be a list of typed entries or of plain quotes.
            let texts = || inner.iter().find_map(Node::scalar);
            inner.iter().find_map(evidence).or_else(|| Some(Evidence::Quote { text: beginning(texts()?) }))
        }
        Some(inner @ Node::Map(_)) => evidence(inner).or_else(|| absence(inner)),
        Some(text) => text.scalar().map(|text| Evidence::Quote { text: beginning(text) }),
        None if node.has(TERMS) => absence(node),
        None => None,
    }
}

fn first_text(node: &Node) -> Option<String> {
    match node {
        Node::List(items) => items.iter().find_map(Node::scalar),
        other => other.scalar(),
    }
}

fn absence(node: &Node) -> Option<Evidence> {
    let terms = node.get(TERMS).map(Node::texts).unwrap_or_default();
    Some(Evidence::Absence { heading: cut(&node.text(HEADING)?, 300), terms })
}

/// Cuts a long quote without an ellipsis: its beginning can still be found in the subject, a changed text could not.
fn beginning(text: String) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => text[..at].to_string(),
        None => text,
    }
}

/// The file that a finding names, either by itself or in front of the line in a location.
fn file(node: &Node) -> Option<String> {
    let named = node.text(FILE).or_else(|| {
        let said = node.text(LOCATION)?;
        let name = said.split([':', '#', ' ', ',']).next().unwrap_or_default().trim_matches('`').to_string();
        // A location may also be a section title; only something like a path is a file.
        (name.contains('/') || name.contains('.')).then_some(name)
    })?;
    // `src/a.rs:12` includes the line number.
    let name = named.trim().trim_matches('`');
    let name = match name.rsplit_once(':') {
        Some((name, line)) if line.starts_with(|c: char| c.is_ascii_digit()) => name,
        _ => name,
    };
    (!name.is_empty()).then(|| cut(name, 300))
}

fn line(node: &Node) -> Option<u32> {
    let digits = |text: &str| -> Option<u32> {
        let from = text.find(|c: char| c.is_ascii_digit())?;
        let number: String = text[from..].chars().take_while(char::is_ascii_digit).collect();
        number.parse().ok()
    };
    if let Some(said) = node.text(LINE) {
        // In a range such as `a.md:7-9`, the first number is the line.
        return digits(said.rsplit(':').next().unwrap_or(&said));
    }
    if let Some((_, line)) =
        node.text(FILE).as_deref().and_then(|said| said.trim().trim_matches('`').rsplit_once(':'))
    {
        return digits(line);
    }
    // A location can be `a.rs:12`, `a.rs, line 12` or `a.rs#L12`.
    let said = node.text(LOCATION)?.to_lowercase();
    let (_, number) =
        said.rsplit_once(':').or_else(|| said.rsplit_once("line")).or_else(|| said.rsplit_once('#'))?;
    let number = number.trim_start().trim_start_matches(['l', '#', 's', ' ']);
    number.starts_with(|c: char| c.is_ascii_digit()).then(|| digits(number)).flatten()
}

/// Finds an id like `F3` between any other characters.
fn finding_id(said: &str) -> Option<FindingId> {
    let mut words = said.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.find_map(FindingId::parse)
}

fn id(node: &Node) -> Result<FindingId, String> {
    let said = node.text(ID).ok_or("it names no finding")?;
    finding_id(&said).ok_or_else(|| format!("`{}` is no finding id", cut(&said, 40)))
}

fn words(said: &str) -> Vec<String> {
    let words = said.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(12).map(str::to_lowercase).collect()
}

fn claim(node: &Node, _: &mut Vec<String>) -> Result<Claim, String> {
    let id = id(node)?;
    let status = node.text(STATUS).unwrap_or_default();
    let words = words(&status);
    let says = |word: &str| words.iter().any(|known| known == word);
    let denials = ["not", "partially", "partly", "cannot", "un", "will", "to", "almost", "nearly"];
    let done = words.iter().position(|word| ["fixed", "resolved", "done"].contains(&word.as_str()));
    // Only the words before it negate it: `done; will need a note` is done.
    let denied = |at: usize| words[..at].iter().any(|word| denials.contains(&word.as_str()));
    let said = match done {
        // "Blocked" wins over "fixed": `fixed in part, blocked by X` needs a decision.
        _ if says("blocked") => Said::Blocked,
        Some(at) if !denied(at) => Said::Fixed,
        _ => {
            let status = cut(&status.to_uppercase(), 40);
            return Err(format!("status `{status}` is neither FIXED nor BLOCKED"));
        }
    };
    Ok(Claim {
        id,
        said,
        note: cut(&node.text(NOTE).unwrap_or_default(), MOST_CHARS),
        verification: cut(&node.text(VERIFICATION).unwrap_or_default(), MOST_CHARS),
        files_modified: node.get(FILES).map(Node::texts).unwrap_or_default(),
        memory_saved: node.text(MEMORY).is_some_and(|said| is_one_of(&said, &["true", "yes"])),
    })
}

fn ruling(node: &Node, remarks: &mut Vec<String>) -> Result<Ruling, String> {
    if let Some((id, value)) = keyed_by_id(node) {
        let said = match value {
            Node::Map(pairs) => Node::Map(pairs.clone()),
            other => Node::Map(vec![("verdict".to_string(), other.clone())]),
        };
        return ruled(id, &said, remarks);
    }
    ruled(id(node)?, node, remarks)
}

/// Builds a ruling. An unknown word, or a denial without any evidence, leaves the finding in doubt, so that it is
/// asked about again.
fn ruled(id: FindingId, node: &Node, remarks: &mut Vec<String>) -> Result<Ruling, String> {
    let said = node.text(RULING).ok_or_else(|| format!("it says nothing about {id}"))?;
    let note = cut(&node.text(NOTE).unwrap_or_default(), MOST_CHARS);
    let counter = node.get(COUNTER).and_then(first_text).map(beginning).unwrap_or_default();
    let mut holds = holds(&said).unwrap_or_else(|| {
        remarks.push(format!("verdict `{}` on {id} is unknown and was taken as ambiguous", cut(&said, 40)));
        Holds::Ambiguous
    });
    if holds == Holds::Invalid && note.is_empty() && counter.is_empty() {
        remarks.push(format!("{id} was called invalid without counter-evidence; taken as ambiguous"));
        holds = Holds::Ambiguous;
    }
    Ok(Ruling { id, holds, note, counter })
}

fn holds(said: &str) -> Option<Holds> {
    let words = words(said);
    let says = |some: &[&str]| words.iter().any(|word| some.contains(&word.as_str()));
    let (valid, invalid) =
        (says(&["valid", "confirmed", "upheld"]), says(&["invalid", "rejected", "refuted"]));
    // The arms are tried in order: doubt and contradictions come before any clear verdict.
    match (valid, invalid, says(&["not"])) {
        _ if says(&["ambiguous", "unclear", "unsure", "uncertain", "undecided"]) => Some(Holds::Ambiguous),
        (true, true, _) | (false, true, true) => Some(Holds::Ambiguous),
        (true, false, false) => Some(Holds::Valid),
        (false, true, false) | (true, false, true) => Some(Holds::Invalid),
        (false, false, _) => None,
    }
}

/// Keeps one ruling for each finding. Contradicting rulings on the same finding leave it in doubt.
fn agreed(rulings: Vec<Ruling>, remarks: &mut Vec<String>) -> Vec<Ruling> {
    let mut known: std::collections::BTreeMap<FindingId, usize> = std::collections::BTreeMap::new();
    let mut kept: Vec<Ruling> = Vec::new();
    for ruling in rulings {
        match known.get(&ruling.id).and_then(|index| kept.get_mut(*index)) {
            None => {
                known.insert(ruling.id, kept.len());
                kept.push(ruling);
            }
            Some(first) if first.holds != ruling.holds => {
                remarks.push(format!(
                    "{} was called {} and {}; taken as ambiguous",
                    first.id, first.holds, ruling.holds
                ));
                first.holds = Holds::Ambiguous;
            }
            Some(_) => {}
        }
    }
    kept
}
