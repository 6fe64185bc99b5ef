// Loaded before BMAD's alpha installer, which only asks at a terminal: answers each of its questions with what the question
// itself proposes, and those about the folder, the modules and the clients from the environment.
'use strict';
const Module = require('node:module');

const folder = process.env.TRIBUNAL_BMAD_FOLDER;
const wanted = {
  module: (process.env.TRIBUNAL_BMAD_MODULES || '').split(','),
  tool: (process.env.TRIBUNAL_BMAD_CLIENTS || '').split(','),
};

const given = async (value, answers) => (typeof value === 'function' ? value(answers) : value);
const valueOf = (choice) => (choice !== null && typeof choice === 'object' ? choice.value : choice);

async function answer(question, answers) {
  const asked = String((await given(question.message, answers)) || '').toLowerCase();
  const proposed = await given(question.default, answers);
  const choices = ((await given(question.choices, answers)) || []).filter((choice) => choice && choice.type !== 'separator');
  switch (question.type) {
    case 'checkbox': {
      const kind = Object.keys(wanted).find((word) => asked.includes(word));
      const chosen = choices.filter((choice) => (kind ? wanted[kind].includes(valueOf(choice)) : choice.checked));
      return chosen.map(valueOf);
    }
    case 'list':
      if (typeof proposed === 'number') return valueOf(choices[proposed]);
      return proposed === undefined ? valueOf(choices[0]) : proposed;
    case 'confirm':
      if (asked.includes('install to this directory') || asked.includes('create it')) return true;
      return proposed === undefined ? true : proposed;
    default:
      if (asked.includes('installation directory')) return folder;
      return proposed === undefined ? '' : proposed;
  }
}

async function prompt(questions) {
  const answers = {};
  for (const question of [].concat(questions)) {
    const skipped = question.when !== undefined && !(await given(question.when, answers));
    if (!skipped) answers[question.name] = await answer(question, answers);
  }
  return answers;
}

const load = Module._load;
Module._load = function (name, ...rest) {
  const loaded = load.call(this, name, ...rest);
  if (name !== 'inquirer') return loaded;
  const asking = (inner) => new Proxy(inner, { get: (from, key) => (key === 'prompt' ? prompt : from[key]) });
  return new Proxy(loaded, {
    get: (from, key) => (key === 'prompt' ? prompt : key === 'default' ? asking(from.default || from) : from[key]),
  });
};
