//! How a seat works: the methods of an elicitation, the personas and rounds of a party.
//!
//! Both are picked by counting words in the text under review, so that the same text always gets the same plan and a
//! journal can be replayed. The wording for agents is in the templates of `agents`.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::{cmp::Reverse, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::level::{Role, words};

/// The part of a brief that only some roles have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "plan", rename_all = "snake_case")]
pub enum Plan {
    /// The role has no plan, or none was picked yet.
    #[default]
    Plain,
    Party {
        personas: Vec<Persona>,
        /// Rounds of cross-examination.
        rounds: u32,
    },
    Elicitation {
        methods: Vec<Method>,
    },
}

/// A role in a team that speaks in a party; never a real individual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Persona {
    pub name: String,
    /// What the persona pays attention to.
    pub focus: String,
}

/// A technique for finding what a text leaves unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    Assumptions,
    EdgeCases,
    FailureModes,
    Stakeholders,
    Constraints,
    Dependencies,
    FiveWhys,
}

words!(Method {
    Assumptions = "assumptions",
    EdgeCases = "edge cases",
    FailureModes = "failure modes",
    Stakeholders = "stakeholders",
    Constraints = "constraints",
    Dependencies = "dependencies",
    FiveWhys = "five whys",
});

/// The methods with the prefixes of words that call for them.
const METHODS: [(Method, &[&str]); 7] = [
    (Method::Assumptions, &["assum", "expect", "should", "will", "always", "typical", "estimat", "believ"]),
    (Method::EdgeCases, &["limit", "maxim", "minim", "empty", "zero", "valid", "input", "format", "boundar"]),
    (Method::FailureModes, &["fail", "error", "timeout", "retr", "outage", "crash", "recover", "backup"]),
    (
        Method::Stakeholders,
        &["user", "customer", "team", "admin", "operator", "stakeholder", "persona", "role"],
    ),
    (
        Method::Constraints,
        &["must", "budget", "deadline", "compl", "regulat", "latenc", "performance", "legal"],
    ),
    (
        Method::Dependencies,
        &["depend", "integrat", "service", "vendor", "api", "library", "database", "third"],
    ),
    (Method::FiveWhys, &["because", "goal", "problem", "reason", "purpose", "value", "why", "vision"]),
];

/// A built-in persona: name, focus, and the prefixes of words that call for it.
type Entry = (&'static str, &'static str, &'static [&'static str]);

const ROSTER: [Entry; 8] = [
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
pub const LEAST: usize = 3;
/// The most personas or methods in a plan.
pub const MOST: usize = 5;

impl Plan {
    pub fn is_plain(&self) -> bool {
        *self == Plan::Plain
    }

    /// Returns the plan for a seat of this role over this text, with the built-in roster and defaults.
    pub fn for_role(role: Role, text: &str) -> Plan {
        match role {
            // Only these two roles have a choice to make.
            Role::Party => Plan::party(text, &[], LEAST, 3),
            Role::Elicitation => Plan::elicitation(text, LEAST),
            _ => Plan::Plain,
        }
    }

    /// Plans a party over this text with personas from the project's roster, or from the built-in one if it has none.
    pub fn party(text: &str, roster: &[Persona], least: usize, most_rounds: u32) -> Plan {
        let number = how_many(text, least);
        // The project's own roster replaces the built-in one completely.
        let personas = if roster.is_empty() {
            let called = ROSTER.map(|(name, focus, words)| (name, focus, words.to_vec()));
            let scores = scores(text, called.iter().map(|(_, _, words)| words.as_slice()));
            let picked = best(&scores, number).into_iter().map(|index| &ROSTER[index]);
            picked.map(|(name, focus, _)| Persona { name: (*name).into(), focus: (*focus).into() }).collect()
        } else {
            from_roster(text, roster, number)
        };
        // More points of view need one more round to answer each other.
        let rounds = if number > LEAST { 3 } else { 2 };
        // At least one round, even if the settings say none: without it there is no party.
        Plan::Party { personas, rounds: rounds.min(most_rounds).max(1) }
    }

    pub fn elicitation(text: &str, least: usize) -> Plan {
        let scores = scores(text, METHODS.iter().map(|(_, words)| *words));
        let picked = best(&scores, how_many(text, least)).into_iter().map(|index| METHODS[index].0);
        Plan::Elicitation { methods: picked.collect() }
    }
}

/// Returns how many personas or methods to pick: a longer text supports more points of view.
fn how_many(text: &str, least: usize) -> usize {
    let by_size = match text.len() {
        0..2_000 => 3,
        2_000..8_000 => 4,
        _ => 5,
    };
    // The settings can raise the number, but only up to the maximum.
    by_size.max(least).clamp(LEAST, MOST)
}

/// Picks personas from a project's roster. It has no keywords, so the longer words of names and focuses are used.
fn from_roster(text: &str, roster: &[Persona], number: usize) -> Vec<Persona> {
    let folded: Vec<Vec<String>> = roster.iter().map(calls).collect();
    let words: Vec<Vec<&str>> =
        folded.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
    let scores = scores(text, words.iter().map(Vec::as_slice));
    best(&scores, number).into_iter().map(|index| roster[index].clone()).collect()
}

fn calls(persona: &Persona) -> Vec<String> {
    let words = persona.name.split_whitespace().chain(persona.focus.split_whitespace());
    // Punctuation such as in `limits,` does not belong to the keyword.
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
    // Short words such as `and` occur in every text.
    words.filter(|word| word.chars().count() > 3).collect()
}

/// Counts for each list how many words of the text begin with one of its prefixes.
fn scores<'w>(text: &str, lists: impl Iterator<Item = &'w [&'w str]>) -> Vec<u32> {
    let mut starts: Vec<(&str, usize)> = Vec::new();
    let mut scores = Vec::new();
    for (index, list) in lists.enumerate() {
        // One flat list of all prefixes, each with the index of its list.
        starts.extend(list.iter().map(|start| (*start, index)));
        scores.push(0);
    }
    // The text is split once for all lists: it can be long, and there are many prefixes.
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
        let word = word.to_lowercase();
        for (_, index) in starts.iter().filter(|(start, _)| word.starts_with(start)) {
            scores[*index] += 1;
        }
    }
    scores
}

/// Returns the positions of the highest counts in their original order; of equal counts the earlier one wins.
fn best(scores: &[u32], number: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // The sort is stable, so equal counts keep their order and the result is reproducible.
    order.sort_by_key(|index| Reverse(scores[*index]));
    // Back to the original order, so that the roster's order is what users see.
    order.truncate(number);
    order.sort_unstable();
    order
}

impl fmt::Display for Persona {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.focus.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{} ({})", self.name, self.focus)
        }
    }
}

impl Persona {
    pub fn new(name: impl ToString, focus: impl ToString) -> Persona {
        Persona { name: name.to_string(), focus: focus.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn names(plan: &Plan) -> Vec<String> {
        match plan {
            Plan::Party { personas, .. } => personas.iter().map(|persona| persona.name.clone()).collect(),
            Plan::Elicitation { methods } => methods.iter().map(ToString::to_string).collect(),
            Plan::Plain => vec![],
        }
    }

    #[test]
    fn the_text_calls_for_its_personas() {
        let text =
            "Passwords are encrypted; tokens need permissions. A deploy has a rollback, a backup and alerts.";
        assert_eq!(names(&Plan::for_role(Role::Party, text)), ["architect", "security", "operations"]);
    }

    #[test]
    fn the_text_calls_for_its_methods() {
        let text = "On timeout the service retries; errors and outages are recovered from the vendor's api.";
        assert_eq!(
            names(&Plan::for_role(Role::Elicitation, text)),
            ["assumptions", "failure modes", "dependencies"]
        );
    }

    #[test]
    fn a_longer_text_gets_more_of_them_but_never_more_than_five() {
        for (bytes, least, number, rounds) in
            [(0, 3, 3, 2), (1_999, 3, 3, 2), (2_000, 3, 4, 3), (8_000, 3, 5, 3), (0, 9, 5, 3), (0, 0, 3, 2)]
        {
            let text = "x".repeat(bytes);
            let plan = Plan::party(&text, &[], least, 3);
            let Plan::Party { personas, rounds: held } = &plan else { panic!() };
            assert_eq!((personas.len(), *held), (number, rounds), "{bytes} bytes, at least {least}");
            assert_eq!(names(&Plan::elicitation(&text, least)).len(), number);
        }
    }

    #[test]
    fn a_project_s_own_roster_comes_first() {
        let roster: Vec<Persona> = ["billing clerk", "fleet driver", "customs officer", "ship's cook"]
            .map(|name| Persona::new(name, ""))
            .to_vec();
        let plan = Plan::party("The customs officer and the cook wait for billing.", &roster, 3, 3);
        assert_eq!(names(&plan), ["billing clerk", "customs officer", "ship's cook"]);
        let few = Plan::party("text", &roster[..1], 3, 3);
        assert_eq!(names(&few), ["billing clerk"], "a roster of one is all there is");
    }

    #[test]
    fn only_parties_and_elicitations_have_a_plan() {
        let planned = Role::ALL.into_iter().filter(|role| !Plan::for_role(*role, "text").is_plain());
        assert_eq!(planned.collect::<Vec<_>>(), [Role::Party, Role::Elicitation]);
    }
}
