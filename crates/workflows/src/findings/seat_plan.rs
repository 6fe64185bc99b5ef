//! How a seat works: the methods of an elicitation, the personas and rounds of a party.
//!
//! Both are picked by counting words in the text under review, so that the same text always gets the same plan and a
//! journal can be replayed. The wording for agents is in the templates of `agents`.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::{cmp::Reverse, fmt};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::agent_role::AgentRole;
use tribunal_engine::text::word_table::words;

/// The part of a brief that only some roles have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "plan", rename_all = "snake_case")]
pub enum SeatPlan {
    /// The role has no plan, or none was picked yet.
    #[default]
    Plain,
    Party {
        personas: Vec<Persona>,
        /// Rounds of cross-examination.
        rounds: u32,
    },
    Elicitation {
        methods: Vec<ElicitationMethod>,
    },
    /// The change that a judge has to look at, in numbered parts.
    Judgement {
        parts: Vec<PartToJudge>,
    },
}

/// One part of a change as a judge sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartToJudge {
    /// `C1`, `C2` and so on.
    pub id: String,
    /// The file and the lines before the change.
    pub place: String,
    pub before: String,
    pub after: String,
    /// It is not at the evidence of any of the findings.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_elsewhere: bool,
}

/// A role in a team that speaks in a party; never a real individual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Persona {
    pub name: String,
    /// What the persona pays attention to.
    pub focus: String,
}

/// A technique for finding what a text leaves unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ElicitationMethod {
    Assumptions,
    EdgeCases,
    FailureModes,
    Stakeholders,
    Constraints,
    Dependencies,
    FiveWhys,
}

words!(ElicitationMethod {
    Assumptions = "assumptions",
    EdgeCases = "edge cases",
    FailureModes = "failure modes",
    Stakeholders = "stakeholders",
    Constraints = "constraints",
    Dependencies = "dependencies",
    FiveWhys = "five whys",
});

/// The methods with the prefixes of words that call for them.
const METHOD_KEYWORDS: [(ElicitationMethod, &[&str]); 7] = [
    (ElicitationMethod::Assumptions, &["assum", "expect", "should", "will", "always", "typical", "estimat", "believ"]),
    (
        ElicitationMethod::EdgeCases,
        &["limit", "maxim", "minim", "empty", "zero", "valid", "input", "format", "boundar"],
    ),
    (ElicitationMethod::FailureModes, &["fail", "error", "timeout", "retr", "outage", "crash", "recover", "backup"]),
    (
        ElicitationMethod::Stakeholders,
        &["user", "customer", "team", "admin", "operator", "stakeholder", "persona", "role"],
    ),
    (
        ElicitationMethod::Constraints,
        &["must", "budget", "deadline", "compl", "regulat", "latenc", "performance", "legal"],
    ),
    (
        ElicitationMethod::Dependencies,
        &["depend", "integrat", "service", "vendor", "api", "library", "database", "third"],
    ),
    (ElicitationMethod::FiveWhys, &["because", "goal", "problem", "reason", "purpose", "value", "why", "vision"]),
];

/// A built-in persona: name, focus, and the prefixes of words that call for it.
type RosterEntry = (&'static str, &'static str, &'static [&'static str]);

const BUILT_IN_ROSTER: [RosterEntry; 8] = [
    (
        "architect",
        "structure, boundaries, data flow, what cannot be changed later",
        &["architect", "component", "service", "database", "scal", "interface", "module", "schema"],
    ),
    (
        "product manager",
        "goals, scope, measures of success, what users get",
        &["goal", "user", "customer", "scope", "market", "metric", "requirement", "mvp", "release"],
    ),
    (
        "developer",
        "whether it can be built as written, hidden work, contradictions",
        &["implement", "code", "api", "function", "library", "endpoint", "build", "class"],
    ),
    (
        "tester",
        "what can be checked and how, limits, error paths",
        &["test", "accept", "criteri", "valid", "error", "edge", "expect", "verif"],
    ),
    (
        "security",
        "secrets, permissions, personal data, misuse",
        &["secur", "auth", "password", "token", "encrypt", "privac", "permission", "gdpr", "secret"],
    ),
    (
        "operations",
        "deployment, monitoring, failure, recovery, cost",
        &["deploy", "monitor", "backup", "outage", "latenc", "alert", "server", "recover", "rollback"],
    ),
    (
        "ux",
        "flows, wording, accessibility, the first five minutes",
        &["screen", "button", "click", "page", "accessib", "design", "form", "view", "journey"],
    ),
    (
        "writer",
        "terms, ambiguity, what a newcomer would misread",
        &["document", "guide", "term", "glossar", "describ", "section", "readme", "explain"],
    ),
];

/// The least number of personas or methods in a plan.
pub const MIN_PICKS: usize = 3;
/// The most personas or methods in a plan.
pub const MAX_PICKS: usize = 5;

impl SeatPlan {
    pub fn is_plain(&self) -> bool {
        *self == SeatPlan::Plain
    }

    /// Returns the plan for a seat of this role over this text, with the built-in roster and defaults.
    pub fn for_role(role: AgentRole, reviewed_text: &str) -> SeatPlan {
        match role {
            // Only these two roles have a choice to make.
            AgentRole::Party => SeatPlan::plan_party(reviewed_text, &[], MIN_PICKS, 3),
            AgentRole::Elicitation => SeatPlan::plan_elicitation(reviewed_text, MIN_PICKS),
            _ => SeatPlan::Plain,
        }
    }

    /// Plans a party over this text with personas from the project's roster, or from the built-in one if it has none.
    pub fn plan_party(reviewed_text: &str, roster: &[Persona], min_personas: usize, max_rounds: u32) -> SeatPlan {
        let persona_count = pick_count(reviewed_text, min_personas);
        // The project's own roster replaces the built-in one completely.
        let personas = if roster.is_empty() {
            let built_in = BUILT_IN_ROSTER.map(|(name, focus, keywords)| (name, focus, keywords.to_vec()));
            let hit_counts =
                count_keyword_hits(reviewed_text, built_in.iter().map(|(_, _, keywords)| keywords.as_slice()));
            let picked = top_indices(&hit_counts, persona_count).into_iter().map(|index| &BUILT_IN_ROSTER[index]);
            picked.map(|(name, focus, _)| Persona { name: (*name).into(), focus: (*focus).into() }).collect()
        } else {
            pick_from_roster(reviewed_text, roster, persona_count)
        };
        // More points of view need one more round to answer each other.
        let rounds = if persona_count > MIN_PICKS { 3 } else { 2 };
        // At least one round, even if the settings say none: without it there is no party.
        SeatPlan::Party { personas, rounds: rounds.min(max_rounds).max(1) }
    }

    pub fn plan_elicitation(reviewed_text: &str, min_methods: usize) -> SeatPlan {
        let hit_counts = count_keyword_hits(reviewed_text, METHOD_KEYWORDS.iter().map(|(_, keywords)| *keywords));
        let picked = top_indices(&hit_counts, pick_count(reviewed_text, min_methods))
            .into_iter()
            .map(|index| METHOD_KEYWORDS[index].0);
        SeatPlan::Elicitation { methods: picked.collect() }
    }
}

/// Returns how many personas or methods to pick: a longer text supports more points of view.
fn pick_count(reviewed_text: &str, min_count: usize) -> usize {
    let by_size = match reviewed_text.len() {
        0..2_000 => 3,
        2_000..8_000 => 4,
        _ => 5,
    };
    // The settings can raise the number, but only up to the maximum.
    by_size.max(min_count).clamp(MIN_PICKS, MAX_PICKS)
}

/// Picks personas from a project's roster. It has no keywords, so the longer words of names and focuses are used.
fn pick_from_roster(reviewed_text: &str, roster: &[Persona], persona_count: usize) -> Vec<Persona> {
    let owned_keywords: Vec<Vec<String>> = roster.iter().map(persona_keywords).collect();
    let keyword_lists: Vec<Vec<&str>> =
        owned_keywords.iter().map(|keywords| keywords.iter().map(String::as_str).collect()).collect();
    let hit_counts = count_keyword_hits(reviewed_text, keyword_lists.iter().map(Vec::as_slice));
    top_indices(&hit_counts, persona_count).into_iter().map(|index| roster[index].clone()).collect()
}

fn persona_keywords(persona: &Persona) -> Vec<String> {
    let all_words = persona.name.split_whitespace().chain(persona.focus.split_whitespace());
    // Punctuation such as in `limits,` does not belong to the keyword.
    let all_words =
        all_words.map(|word| word.trim_matches(|character: char| !character.is_alphanumeric()).to_lowercase());
    // Short words such as `and` occur in every text.
    all_words.filter(|word| word.chars().count() > 3).collect()
}

/// Counts for each list how many words of the text begin with one of its prefixes.
fn count_keyword_hits<'w>(reviewed_text: &str, keyword_lists: impl Iterator<Item = &'w [&'w str]>) -> Vec<u32> {
    let mut indexed_prefixes: Vec<(&str, usize)> = Vec::new();
    let mut hit_counts = Vec::new();
    for (list_index, keywords) in keyword_lists.enumerate() {
        // One flat list of all prefixes, each with the index of its list.
        indexed_prefixes.extend(keywords.iter().map(|prefix| (*prefix, list_index)));
        hit_counts.push(0);
    }
    // The text is split once for all lists: it can be long, and there are many prefixes.
    for word in reviewed_text.split(|character: char| !character.is_alphanumeric()).filter(|word| word.len() > 2) {
        let word = word.to_lowercase();
        for (_, list_index) in indexed_prefixes.iter().filter(|(prefix, _)| word.starts_with(prefix)) {
            hit_counts[*list_index] += 1;
        }
    }
    hit_counts
}

/// Returns the positions of the highest counts in their original order; of equal counts the earlier one wins.
fn top_indices(hit_counts: &[u32], pick_limit: usize) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..hit_counts.len()).collect();
    // The sort is stable, so equal counts keep their order and the result is reproducible.
    indices.sort_by_key(|index| Reverse(hit_counts[*index]));
    // Back to the original order, so that the roster's order is what users see.
    indices.truncate(pick_limit);
    indices.sort_unstable();
    indices
}

impl fmt::Display for Persona {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.focus.is_empty() {
            formatter.write_str(&self.name)
        } else {
            write!(formatter, "{} ({})", self.name, self.focus)
        }
    }
}

impl Persona {
    pub fn new(persona_name: impl ToString, focus: impl ToString) -> Persona {
        Persona { name: persona_name.to_string(), focus: focus.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn picked_names(plan: &SeatPlan) -> Vec<String> {
        match plan {
            SeatPlan::Party { personas, .. } => personas.iter().map(|persona| persona.name.clone()).collect(),
            SeatPlan::Elicitation { methods } => methods.iter().map(ToString::to_string).collect(),
            SeatPlan::Plain | SeatPlan::Judgement { .. } => vec![],
        }
    }

    #[test]
    fn the_text_calls_for_its_personas() {
        let text = "Passwords are encrypted; tokens need permissions. A deploy has a rollback, a backup and alerts.";
        assert_eq!(picked_names(&SeatPlan::for_role(AgentRole::Party, text)), ["architect", "security", "operations"]);
    }

    #[test]
    fn the_text_calls_for_its_methods() {
        let text = "On timeout the service retries; errors and outages are recovered from the vendor's api.";
        assert_eq!(
            picked_names(&SeatPlan::for_role(AgentRole::Elicitation, text)),
            ["assumptions", "failure modes", "dependencies"]
        );
    }

    #[test]
    fn a_longer_text_gets_more_picks_but_never_more_than_five() {
        for (bytes, min_count, expected_count, expected_rounds) in
            [(0, 3, 3, 2), (1_999, 3, 3, 2), (2_000, 3, 4, 3), (8_000, 3, 5, 3), (0, 9, 5, 3), (0, 0, 3, 2)]
        {
            let text = "x".repeat(bytes);
            let plan = SeatPlan::plan_party(&text, &[], min_count, 3);
            let SeatPlan::Party { personas, rounds: planned_rounds } = &plan else { panic!() };
            assert_eq!(
                (personas.len(), *planned_rounds),
                (expected_count, expected_rounds),
                "{bytes} bytes, at least {min_count}"
            );
            assert_eq!(picked_names(&SeatPlan::plan_elicitation(&text, min_count)).len(), expected_count);
        }
    }

    #[test]
    fn the_roster_of_the_project_comes_first() {
        let roster: Vec<Persona> = ["billing clerk", "fleet driver", "customs officer", "ship's cook"]
            .map(|name| Persona::new(name, ""))
            .to_vec();
        let plan = SeatPlan::plan_party("The customs officer and the cook wait for billing.", &roster, 3, 3);
        assert_eq!(picked_names(&plan), ["billing clerk", "customs officer", "ship's cook"]);
        let small_plan = SeatPlan::plan_party("text", &roster[..1], 3, 3);
        assert_eq!(picked_names(&small_plan), ["billing clerk"], "a roster of one is all there is");
    }

    #[test]
    fn only_parties_and_elicitations_have_a_plan() {
        let roles_with_plan = AgentRole::ALL.into_iter().filter(|role| !SeatPlan::for_role(*role, "text").is_plain());
        assert_eq!(roles_with_plan.collect::<Vec<_>>(), [AgentRole::Party, AgentRole::Elicitation]);
    }
}
