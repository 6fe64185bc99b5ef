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
    &["verdict", "ruling", "judgement", "judgment", "status", "result", "validity", "valid", "isvalid"];
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

/// The page that documents these names must list exactly them.
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tribunal_workflows::tasks::answer_words::{CLAIM_WORDS, SEVERITY_WORDS, VERDICT_WORDS, WordGroup};

    use super::*;

    const PAGE: &str = include_str!("../../../../docs/agent-protocol.md");

    fn page_section(heading: &str) -> &'static str {
        let section_start = PAGE.find(heading).unwrap_or_else(|| panic!("{heading} is not on the page"));
        let section = &PAGE[section_start + heading.len()..];
        &section[..section.find("\n##").unwrap_or(section.len())]
    }

    /// The words in backticks, by their letters and digits; examples with a dot are left out.
    fn quoted_names(page_text: &str) -> BTreeSet<String> {
        let quoted_words = page_text.split('`').skip(1).step_by(2).filter(|quoted| !quoted.contains('.'));
        quoted_words.map(|quoted| quoted.chars().filter(char::is_ascii_alphanumeric).collect()).collect()
    }

    fn table_row(heading: &str, first_cell: &str) -> &'static str {
        let row_start = format!("| {first_cell}");
        let mut rows = page_section(heading).lines().filter(|line| line.starts_with(&row_start));
        rows.next().unwrap_or_else(|| panic!("no row `{row_start}` below {heading}"))
    }

    #[test]
    fn the_page_lists_every_accepted_word() {
        fn check_table<M>(heading: &str, word_table: &'static [WordGroup<M>]) {
            let quote_words =
                |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            for group in word_table {
                let mut expected_row = format!("| {} | {} |", group.name, quote_words(group.clear_words));
                if !group.plain_words.is_empty() {
                    expected_row.push_str(&format!(" {} |", quote_words(group.plain_words)));
                }
                assert!(
                    page_section(heading).contains(&expected_row),
                    "the page should have this row:\n{expected_row}"
                );
            }
        }
        check_table("### Reviewers", &SEVERITY_WORDS);
        check_table("### Challengers", &VERDICT_WORDS);
        check_table("### Fixers", &CLAIM_WORDS);
    }

    #[test]
    fn the_page_lists_every_accepted_key() {
        for (heading, first_cell, key_lists) in [
            ("### Reviewers", "`description`", vec![DESCRIPTION_KEYS]),
            ("### Reviewers", "`quote`", vec![QUOTE_KEYS, EVIDENCE_KEYS, &["absent"]]),
            ("### Reviewers", "`absent`", vec![ABSENCE_KEYS, HEADING_KEYS, TERM_KEYS, &["quote"]]),
            ("### Reviewers", "`severity`", vec![SEVERITY_KEYS, &["medium"]]),
            ("### Reviewers", "`category`", vec![CATEGORY_KEYS]),
            ("### Reviewers", "`line`", vec![LINE_KEYS, LOCATION_KEYS]),
            ("### Reviewers", "`file`", vec![FILE_KEYS]),
            ("### Reviewers", "`suggested_fix`", vec![SUGGESTED_FIX_KEYS]),
            ("### Challengers", "`id`", vec![FINDING_ID_KEYS]),
            ("### Challengers", "`verdict`", vec![VERDICT_KEYS]),
            ("### Challengers", "`reason`", vec![NOTE_KEYS]),
            ("### Challengers", "`counter_evidence`", vec![COUNTER_EVIDENCE_KEYS]),
            ("### Fixers", "`id`", vec![FINDING_ID_KEYS]),
            ("### Fixers", "`status`", vec![STATUS_KEYS]),
            ("### Fixers", "`fix_description`", vec![NOTE_KEYS]),
            ("### Fixers", "`verification`", vec![VERIFICATION_KEYS]),
            ("### Fixers", "`files_modified`", vec![MODIFIED_FILES_KEYS]),
            ("### Fixers", "`memory_saved`", vec![MEMORY_SAVED_KEYS, &["true"]]),
        ] {
            let expected_names: BTreeSet<String> = key_lists.concat().into_iter().map(str::to_string).collect();
            assert_eq!(quoted_names(table_row(heading, first_cell)), expected_names, "{heading}, {first_cell}");
        }
    }

    #[test]
    fn the_page_lists_every_name_of_a_list() {
        for (heading, vocabulary) in [
            ("### Reviewers", FINDINGS_VOCABULARY),
            ("### Challengers", VERDICTS_VOCABULARY),
            ("### Fixers", FIXES_VOCABULARY),
        ] {
            let section = page_section(heading);
            let sentence_start = section.find("may also be called").unwrap();
            let sentence = &section[sentence_start..];
            let sentence = &sentence[..sentence.find('.').unwrap()];
            let expected_names: BTreeSet<String> =
                vocabulary.list_names[1..].iter().map(|list_name| list_name.to_string()).collect();
            assert_eq!(quoted_names(sentence), expected_names, "{heading}");
        }
    }
}
