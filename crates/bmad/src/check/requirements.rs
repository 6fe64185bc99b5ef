//! The functional requirements of the PRD compared with the epics: those that no epic covers, and those that the PRD does not
//! have.
//!
//! Other kinds are left alone: epics number those themselves where the PRD does not.

use std::collections::{BTreeMap, BTreeSet};

use super::material::Material;
use crate::{
    commands::Step,
    documents::Kind,
    epics::{Requirement, ids_in, inventory},
    problem::Problem,
};

pub(super) fn check(material: &Material<'_>, problems: &mut Vec<Problem>) {
    unknown_epics(material, problems);
    let mut seen = BTreeSet::new();
    let asked: Vec<Requirement> = material
        // A requirement may be defined again in a later part of the PRD; the first place counts.
        .of(Kind::Prd)
        .flat_map(|text| inventory(&text.path, &text.text))
        .filter(|requirement| is_functional(&requirement.id) && seen.insert(requirement.id.clone()))
        .collect();
    let named = named(material);
    // If one of the two does not number its requirements, nothing can be compared.
    if asked.is_empty() || named.is_empty() || material.of(Kind::Epics).next().is_none() {
        return;
    }
    uncovered(material, &asked, problems);
    // A requirement that is not recognized as a definition still belongs to the PRD if it is mentioned there.
    let mentioned: BTreeSet<String> = material.of(Kind::Prd).flat_map(|text| ids_in(&text.text)).collect();
    let unknown = named.into_iter().filter(|(id, _)| !mentioned.contains(id)).collect();
    unasked(&asked, unknown, problems);
}

fn is_functional(id: &str) -> bool {
    id.starts_with("FR")
}

/// Where a requirement is named.
struct Place {
    path: String,
    line: usize,
}

/// Every functional requirement that the epics name, with its first place.
fn named(material: &Material<'_>) -> BTreeMap<String, Place> {
    let epics = &material.epics;
    let inventory = epics.requirements.iter().map(|own| (&own.id, &own.path, own.line));
    let coverage = epics.coverage.iter().map(|own| (&own.requirement, &own.path, own.line));
    let of_epics = epics
        .epics
        .iter()
        .flat_map(|epic| epic.requirements.iter().map(move |id| (id, &epic.path, epic.line)));
    let of_stories = epics
        .stories()
        .flat_map(|story| story.requirements.iter().map(move |id| (id, &story.path, story.line)));
    let mut named = BTreeMap::new();
    for (id, path, line) in inventory.chain(coverage).chain(of_epics).chain(of_stories) {
        if is_functional(id) {
            named.entry(id.clone()).or_insert_with(|| Place { path: path.clone(), line });
        }
    }
    named
}

/// Reports requirements that no epic covers. The inventory of the epics only repeats the PRD and covers nothing.
fn uncovered(material: &Material<'_>, asked: &[Requirement], problems: &mut Vec<Problem>) {
    let epics = &material.epics;
    let by_map = epics.coverage.iter().filter(|own| !own.epics.is_empty()).map(|own| &own.requirement);
    let by_epics = epics.epics.iter().flat_map(|epic| &epic.requirements);
    let by_stories = epics.stories().flat_map(|story| &story.requirements);
    let covered: BTreeSet<&String> = by_map.chain(by_epics).chain(by_stories).collect();
    // Epics that name no requirement at all cover them in other words.
    if !covered.iter().any(|id| is_functional(id)) {
        return;
    }
    let path = material.documents.epics().map_or("the epics", |epics| epics.path.as_str());
    for requirement in asked.iter().filter(|requirement| !covered.contains(&requirement.id)) {
        let what = format!("no epic covers {} ({path})", requirement.id);
        problems.push(
            Problem::warning("requirement-uncovered", &requirement.path, what)
                .at(requirement.line)
                .why("what no story asks for is not built")
                .todo(format!("add it to an epic: {}", material.how(Step::Epics))),
        );
    }
}

/// Reports requirements that the epics name and the PRD does not have.
fn unasked(asked: &[Requirement], unknown: BTreeMap<String, Place>, problems: &mut Vec<Problem>) {
    let prd = asked.first().map_or("the PRD", |requirement| requirement.path.as_str());
    for (id, place) in unknown {
        let what = format!("{id} is named here, and {prd} has no such requirement");
        problems.push(
            Problem::warning("requirement-unknown", &place.path, what)
                .at(place.line)
                .why("one of the two was changed without the other")
                .todo("write it into the PRD, or take it out here"),
        );
    }
}

/// Reports epics that the coverage map names and that do not exist.
fn unknown_epics(material: &Material<'_>, problems: &mut Vec<Problem>) {
    // Without any epic the map is only ahead of the plan.
    let known: BTreeSet<u32> = material.epics.epics.iter().map(|epic| epic.number).collect();
    if known.is_empty() {
        return;
    }
    for coverage in &material.epics.coverage {
        for epic in coverage.epics.iter().filter(|epic| !known.contains(epic)) {
            let what = format!("{} is mapped to epic {epic}; there is none", coverage.requirement);
            let problem = Problem::warning("coverage-unknown-epic", &coverage.path, what).at(coverage.line);
            problems.push(problem.todo("correct the map, or write the epic"));
        }
    }
}
