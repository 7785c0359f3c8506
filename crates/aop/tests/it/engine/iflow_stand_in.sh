#!/bin/sh
# A stand-in for iFlow CLI, which can no longer be installed. It takes the flags that were documented for it
# (--yolo --thinking [--resume ID] -p PROMPT), keeps what it was told per conversation, says what the next of the
# test's files says (replies/1, replies/2 …), and ends with the block that iFlow ended with.
resume=
while [ $# -gt 0 ]; do
  case "$1" in
    --yolo | --thinking) shift ;;
    --resume) resume=$2; shift 2 ;;
    -p) prompt=$2; shift 2 ;;
    *) echo "iflow: unknown argument $1" >&2; exit 1 ;;
  esac
done
file=$(printf '%s\n' "$prompt" | sed -n 's/^Read the file \(.*\) and do what it says.*/\1/p')
[ -n "$file" ] && prompt="$prompt
$(stat -c %a "$file") $(cat "$file")"
folder=$HOME/iflow-stand-in
session=${resume:-session-0000-$$}
[ -n "$resume" ] && [ ! -e "$folder/$session" ] && { echo "iflow: no session $session" >&2; exit 1; }
printf '%s\n===\n' "$prompt" >> "$folder/$session"
count=$(($(cat "$folder/count" 2>/dev/null || echo 0) + 1))
echo $count > "$folder/count"
reply=$folder/replies/$count
[ "$(cat "$reply")" = DIE ] && { echo "half a sent"; kill -9 $$; }
cat "$reply"
printf '\n<Execution Info>\n{"session-id":"%s","conversation-id":"c","assistantRounds":1}\n</Execution Info>\n' "$session"
