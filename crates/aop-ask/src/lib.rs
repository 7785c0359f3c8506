//! The question IR (`NOVEL_ASK`): specs, answers, validation, and the dialogues that put a spec to a human.
