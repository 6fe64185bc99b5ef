#!/usr/bin/env bash
# A stop hook as people write one, for `cargo xtask bench hook` only: the same decision over the same files as `tribunal hook
# stop`, with jq for JSON and perl for the promise. It takes the short ways that a careful author would take.
set -u
state=.claude/ralph-loop.local.md
said=$(cat)
[[ -f $state ]] || { echo '{}'; exit 0; }

header=$(perl -ne 'if (/^---$/) { exit if $seen++; next } print if $seen' "$state")
value() { sed -n "s/^$1: *//p" <<<"$header" | tr -d '"'; }
active=$(value active) iteration=$(value iteration) most=$(value max_iterations)
promise=$(value completion_promise) owner=$(value session_id)
session=$(jq -r '.session_id // ""' <<<"$said")
[[ $active == true && $owner == "$session" ]] || { echo '{}'; exit 0; }

answer=$(jq -r '.last_assistant_message // ""' <<<"$said")
if [[ $(jq 'has("last_assistant_message")' <<<"$said") != true ]]; then
  transcript=$(jq -r '.transcript_path // ""' <<<"$said")
  # From the end: the lines of the last message, and of it the texts.
  answer=$(tac "$transcript" 2>/dev/null | grep -m 20 '"assistant"' | jq -rs '
    map(select(.type == "assistant" and .isSidechain != true and .isApiErrorMessage != true))
    | .[0].message.id as $last | map(select(.message.id == $last)) | reverse
    | map(.message.content[] | select(.type == "text") | .text) | join("\n")')
fi

tag() { perl -0777 -ne 'if (m{<'"$1"'>(.*?)</'"$1"'>}s) { $_ = $1; s/\s+/ /g; s/^ | $//g; print }' <<<"$answer"; }
if [[ $(tag promise) == "$promise" ]]; then
  mv "$state" "$state.done"
  echo '{}'
  exit 0
fi
[[ -z $(tag review-blocked) ]] || { mv "$state" "$state.done"; echo '{}'; exit 0; }
((iteration < most)) || { mv "$state" "$state.done"; echo '{}'; exit 0; }

next=$((iteration + 1))
sed "s/^iteration: .*/iteration: $next/" "$state" >"$state.$$" && mv "$state.$$" "$state"
prompt=$(perl -0777 -pe 's/\A---\n.*?\n---\n\s*//s' "$state")
jq -cn --arg prompt "$prompt" --arg message "Sent back $next of at most $most. When it is done, say <promise>$promise</promise>" \
  '{decision: "block", reason: ($prompt + "\n\n" + $message), systemMessage: $message}'
