//! What the names of files and folders tell: the kind of a document, the number of an epic, a date.

use super::DocumentKind;

/// The last part of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a file is Markdown by its extension.
pub(super) fn is_markdown(file_name: &str) -> bool {
    file_name.to_ascii_lowercase().ends_with(".md")
}

/// Whether a file has the name that the workflow gives it.
pub(super) fn is_exact_name(kind: DocumentKind, file_name: &str) -> bool {
    let exact_names: &[&str] = match kind {
        DocumentKind::Prd => &["prd.md"],
        DocumentKind::Architecture => &["architecture.md", "architecture-spine.md"],
        DocumentKind::Ux => &["ux-design-specification.md", "ux-design.md", "design.md", "experience.md"],
        DocumentKind::Epics => &["epics.md", "epics-and-stories.md"],
        DocumentKind::ProductBrief => &["product-brief.md", "brief.md"],
        _ => &[],
    };
    exact_names.contains(&file_name.to_ascii_lowercase().as_str())
}

/// Whether a file or folder of planning is named after a kind, and is not a report about it.
pub(super) fn is_named_after(kind: DocumentKind, entry_name: &str) -> bool {
    let lower_name = entry_name.to_ascii_lowercase();
    let name_words: Vec<&str> = lower_name
        .split(|character: char| !character.is_alphanumeric())
        .filter(|name_word| !name_word.is_empty())
        .collect();
    const REPORT_WORDS: [&str; 8] =
        ["validation", "readiness", "report", "addendum", "review", "checklist", "retro", "context"];
    if name_words.iter().any(|name_word| REPORT_WORDS.contains(name_word)) {
        return false;
    }
    let has_word = |wanted_words: &[&str]| name_words.iter().any(|name_word| wanted_words.contains(name_word));
    match kind {
        DocumentKind::Prd => has_word(&["prd", "prds"]),
        DocumentKind::Architecture => has_word(&["architecture", "architectures", "arch"]),
        // Whole words are compared: `linux.md` is not about UX.
        DocumentKind::Ux => has_word(&["ux"]),
        DocumentKind::Epics => has_word(&["epic", "epics"]) && !has_word(&["test", "spec"]),
        DocumentKind::ProductBrief => has_word(&["brief", "briefs"]),
        _ => false,
    }
}

/// The number in `epic-3.md` or `epic-3-paying.md`.
pub(super) fn epic_number(file_name: &str) -> Option<u32> {
    let lower_name = file_name.to_ascii_lowercase();
    let after_prefix = lower_name.strip_prefix("epic-")?;
    let digits_end = after_prefix.find(|character: char| !character.is_ascii_digit()).unwrap_or(after_prefix.len());
    after_prefix[..digits_end].parse().ok()
}

/// The kind of a file by its name.
pub(super) fn kind_from_name(file_path: &str) -> Option<DocumentKind> {
    let lower_name = file_name(file_path).to_ascii_lowercase();
    let file_stem = lower_name.strip_suffix(".md");
    if lower_name == "bmm-workflow-status.yaml" {
        return Some(DocumentKind::WorkflowStatus);
    }
    if lower_name.starts_with("gate-decision") && lower_name.ends_with(".json") {
        return Some(DocumentKind::Trace);
    }
    let file_stem = file_stem?;
    let starts_with_any = |prefixes: &[&str]| prefixes.iter().any(|prefix| file_stem.starts_with(prefix));
    // The order matters: the names of retrospectives and specs would also pass for stories.
    Some(match file_stem {
        "deferred-work" => DocumentKind::Deferred,
        "project-context" => DocumentKind::ProjectContext,
        _ if starts_with_any(&["implementation-readiness"]) => DocumentKind::Readiness,
        _ if starts_with_any(&["traceability", "trace-"]) => DocumentKind::Trace,
        _ if starts_with_any(&["test-design"]) => DocumentKind::TestDesign,
        _ if starts_with_any(&["sprint-change-proposal"]) => DocumentKind::ChangeProposal,
        _ if starts_with_any(&["tech-spec"]) => DocumentKind::TechSpec,
        _ if is_retrospective_name(file_stem) => DocumentKind::Retro,
        _ if starts_with_any(&["bmad-build-auto-result", "bmad-dev-auto-result", "spec-"]) => DocumentKind::StorySpec,
        _ if crate::story::key_from_path(file_path).is_some() => DocumentKind::Story,
        _ if file_path.rsplit('/').nth(1) == Some("research") => DocumentKind::Research,
        _ => return None,
    })
}

/// Whether a word of the name says so, as in `epic-3-retro-2026-01-02`, `epic-3-retrospective` and `retrospective-3`.
fn is_retrospective_name(file_stem: &str) -> bool {
    let mut name_words = file_stem.split('-');
    name_words.any(|name_word| name_word == "retro" || name_word == "retrospective")
}

/// The last date in a name as year, month and day, so that dates sort as text; empty if there is none.
pub(super) fn find_date(file_name: &str) -> String {
    let digit_groups: Vec<&str> = file_name
        .split(|character: char| !character.is_ascii_digit())
        .filter(|digit_group| !digit_group.is_empty())
        .collect();
    // Dates are written as `20260102`, `2026-01-02` or, by some agents, `01-02-2026`.
    let compact_date =
        digit_groups.iter().rev().find(|digit_group| digit_group.len() == 8 && digit_group.starts_with("20"));
    let dashed_date = digit_groups.windows(3).rev().find_map(|window| match window {
        [year, month, day] if (year.len(), month.len(), day.len()) == (4, 2, 2) => Some(format!("{year}{month}{day}")),
        [month, day, year] if (month.len(), day.len(), year.len()) == (2, 2, 4) => Some(format!("{year}{month}{day}")),
        _ => None,
    });
    dashed_date.or_else(|| compact_date.map(ToString::to_string)).unwrap_or_default()
}
