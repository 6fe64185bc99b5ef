//! The names by which the lists of an answer are found and by which the fields of their items are read: our own, and
//! the synonyms that other tools' prompts use.

/// The names that the search looks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListVocabulary {
    /// Names of the list.
    pub list_names: &'static [&'static str],
    /// Keys that items have.
    pub item_keys: &'static [&'static str],
    /// Keys that belong next to the list.
    pub sibling_keys: &'static [&'static str],
}

pub(super) const DESCRIPTION_KEYS: &[&str] =
    &["description", "issue", "problem", "title", "message", "summary", "finding"];
pub(super) const SEVERITY_KEYS: &[&str] = &["severity", "priority", "level"];
pub(super) const CATEGORY_KEYS: &[&str] = &["category", "type", "kind", "area"];
pub(super) const QUOTE_KEYS: &[&str] = &["quote", "exactquote", "quotedtext", "quotation", "excerpt", "snippet"];
pub(super) const ABSENCE_KEYS: &[&str] = &["absent", "absence", "missing"];
pub(super) const EVIDENCE_KEYS: &[&str] = &["evidence", "proof"];
pub(super) const HEADING_KEYS: &[&str] = &["heading", "section", "under"];
pub(super) const TERM_KEYS: &[&str] = &["terms", "term", "words", "searched", "searchedfor"];
pub(super) const LINE_KEYS: &[&str] = &["line", "lines", "linenumber", "startline"];
pub(super) const LOCATION_KEYS: &[&str] = &["location", "place", "where", "position"];
pub(super) const FILE_KEYS: &[&str] = &["file", "path", "filename", "filepath"];
pub(super) const SUGGESTED_FIX_KEYS: &[&str] =
    &["suggestedfix", "fix", "suggestion", "recommendation", "remedy", "proposedfix"];
pub(super) const FINDING_ID_KEYS: &[&str] = &["id", "finding", "findingid", "issue", "issueid"];
pub(super) const STATUS_KEYS: &[&str] = &["status", "result", "state"];
pub(super) const NOTE_KEYS: &[&str] =
    &["fixdescription", "description", "reason", "note", "explanation", "because", "comment"];
pub(super) const VERIFICATION_KEYS: &[&str] = &["verification", "verified", "check"];
pub(super) const MODIFIED_FILES_KEYS: &[&str] = &["filesmodified", "files", "fileschanged", "modifiedfiles"];
pub(super) const MEMORY_SAVED_KEYS: &[&str] = &["memorysaved", "savedtomemory"];
pub(super) const VERDICT_KEYS: &[&str] =
    &["verdict", "ruling", "judgement", "judgment", "status", "result", "validity"];
pub(super) const COUNTER_EVIDENCE_KEYS: &[&str] = &["counterevidence", "counter", "counterquote", "quote", "evidence"];

pub(super) const FINDINGS_VOCABULARY: ListVocabulary = ListVocabulary {
    list_names: &["findings", "issues", "problems", "finding", "issuesfound"],
    item_keys: &[
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
    sibling_keys: &["personas", "participants", "consensus", "dissent", "disagreement"],
};

pub(super) const FIXES_VOCABULARY: ListVocabulary = ListVocabulary {
    list_names: &["fixes", "fixesapplied", "claims", "results"],
    item_keys: &[
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
    sibling_keys: &[],
};

pub(super) const VERDICTS_VOCABULARY: ListVocabulary = ListVocabulary {
    list_names: &["verdicts", "rulings", "judgements", "judgments", "challenges", "results"],
    item_keys: &[
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
    sibling_keys: &[],
};
