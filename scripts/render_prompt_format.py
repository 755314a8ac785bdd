#!/usr/bin/env python3
"""Renders a model's chat template once and writes prompt_format.json beside it.

The template is rendered with Jinja2 around a sentinel in the user's place; kvlab itself then only
joins the text before and after it. Thinking is off (enable_thinking=False) and the date that some
templates print is fixed, so that a prompt never changes from one day to the next.

    ~/.cache/kvlab/python/bin/python scripts/render_prompt_format.py MODEL_DIR...
    ~/.cache/kvlab/python/bin/python scripts/render_prompt_format.py MODEL_DIR --template other_template.jinja
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import sys
import tempfile

import jinja2
import jinja2.ext
import jinja2.meta
import jinja2.sandbox

FORMAT_VERSION = 1
FIXED_DATE = datetime.datetime(2024, 7, 26)  # the date Llama 3.1's own template falls back to
SENTINEL = "KVLAB7f3c91e5USER"
SYSTEM_SENTINEL = "KVLABb20d46a8SYSTEM"
SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token",
                 "mask_token")
BY_HAND = ("write prompt_format.json by hand instead: "
           '{"before_user": ..., "after_user": ..., "trims_user_text": false, "system_text": ""}')


class PromptFormatError(Exception):
    """The template, or a file it is read from, cannot be used; the text says why."""


class GenerationBlock(jinja2.ext.Extension):
    """{% generation %}...{% endgeneration %} marks the assistant's text for training; the body stays."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def _raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def _to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def _environment() -> jinja2.Environment:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[GenerationBlock, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = FIXED_DATE.strftime
    return environment


def template_hash(template: str) -> str:
    return hashlib.sha256(template.encode("utf-8")).hexdigest()


def _between(text: str, sentinel: str, what: str) -> tuple[str, str]:
    count = text.count(sentinel)
    if count != 1:
        found = "does not appear" if count == 0 else f"appears {count} times"
        raise PromptFormatError(f"the user's text {found} in {what}, so it cannot be split "
                                f"around it; {BY_HAND}")
    before, after = text.split(sentinel)
    return before, after


def split_template(template: str, special_tokens: dict[str, str], name: str) -> dict:
    """The parts of prompt_format.json for `template`; `name` stands in the messages."""
    try:
        environment = _environment()
        undeclared = jinja2.meta.find_undeclared_variables(environment.parse(template))
        compiled = environment.from_string(template)
    except jinja2.exceptions.TemplateSyntaxError as error:
        raise PromptFormatError(f"{name}, line {error.lineno}: {error.message}") from error
    if "bos_token" in undeclared and "bos_token" not in special_tokens:
        raise PromptFormatError(f"{name} uses bos_token, which neither tokenizer_config.json nor "
                                "special_tokens_map.json gives; pass --bos-token")

    def render(messages):
        try:
            return compiled.render(messages=messages, add_generation_prompt=True, tools=None,
                                   documents=None, enable_thinking=False, **special_tokens)
        except (jinja2.exceptions.TemplateError, TypeError, KeyError) as error:
            raise PromptFormatError(f"{name} fails to render one user message: {error}; "
                                    f"{BY_HAND}") from error

    def user(text):
        return {"role": "user", "content": text}

    before, after = _between(render([user(SENTINEL)]), SENTINEL, name)
    padded = " \n\t " + SENTINEL + " \n "
    padded_before, padded_after = _between(render([user(padded)]), SENTINEL, name)
    if (padded_before, padded_after) == (before, after):
        trims = True
    elif (padded_before, padded_after) == (before + " \n\t ", " \n " + after):
        trims = False
    else:
        raise PromptFormatError(f"{name} changes white space around the user's text in another way "
                                f"than trimming both ends; {BY_HAND}")
    inner = "a  b\n\n\tc"
    changed = render([user(SENTINEL + inner + SENTINEL)])
    if changed != before + SENTINEL + inner + SENTINEL + after:
        raise PromptFormatError(f"{name} changes the user's text itself; {BY_HAND}")

    # What stands where a system message would: the text the template puts in by itself.
    system_text = ""
    try:
        with_system = render([{"role": "system", "content": SYSTEM_SENTINEL}, user(SENTINEL)])
        head, rest = _between(with_system, SYSTEM_SENTINEL, name)
        tail, _ = _between(rest, SENTINEL, name)
        if (before.startswith(head) and before.endswith(tail)
                and len(before) >= len(head) + len(tail)):
            system_text = before[len(head):len(before) - len(tail)]
    except PromptFormatError:
        pass  # this template takes no system message
    return {"before_user": before, "after_user": after, "trims_user_text": trims,
            "system_text": system_text}


def _read_json(path: pathlib.Path) -> dict:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PromptFormatError(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise PromptFormatError(f"{path}: should be a JSON object")
    return value


def _special_tokens(model_dir: pathlib.Path) -> dict[str, str]:
    tokens = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        path = model_dir / name
        if not path.exists():
            continue
        values = _read_json(path)
        for key in SPECIAL_NAMES:
            value = values.get(key)
            if isinstance(value, dict):
                value = value.get("content")
            if isinstance(value, str):
                tokens[key] = value
    return tokens


def find_template(model_dir: pathlib.Path) -> tuple[str, str]:
    """The model's own template and the file it stands in; chat_template.jinja goes first."""
    path = model_dir / "chat_template.jinja"
    if path.exists():
        return path.read_bytes().decode("utf-8"), str(path)
    path = model_dir / "tokenizer_config.json"
    template = _read_json(path).get("chat_template") if path.exists() else None
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template}
        template = named.get("default")
        if template is None:
            raise PromptFormatError(f"{path}: chat_template has no entry named default, only "
                                    f"{', '.join(sorted(map(str, named)))}; pass one with --template")
    if not isinstance(template, str):
        raise PromptFormatError(f"{model_dir} has no chat template (chat_template.jinja, or "
                                f"chat_template in tokenizer_config.json); pass one with --template, "
                                f"or {BY_HAND}")
    return template, str(path)


def prompt_format(model_dir: pathlib.Path, template_file: pathlib.Path | None = None,
                  bos_token: str | None = None) -> dict:
    """Everything that goes into prompt_format.json of `model_dir`."""
    if template_file is None:
        template, name = find_template(model_dir)
    else:
        try:
            template, name = template_file.read_bytes().decode("utf-8"), str(template_file)
        except (OSError, ValueError) as error:
            raise PromptFormatError(f"{template_file}: {error}") from error
    special_tokens = _special_tokens(model_dir)
    if bos_token is not None:
        special_tokens["bos_token"] = bos_token
    parts = split_template(template, special_tokens, name)
    return {
        "format_version": FORMAT_VERSION,
        **parts,
        "template_hash": template_hash(template),
        "template_source": "file given by hand" if template_file else pathlib.Path(name).name,
        "rendered_by": f"jinja2 {jinja2.__version__}",
        "fixed_date": FIXED_DATE.date().isoformat(),
    }


def write_prompt_format(model_dir: pathlib.Path, contents: dict) -> pathlib.Path:
    """Writes beside the target and renames, so that no reader sees half a file."""
    target = model_dir / "prompt_format.json"
    handle, temporary = tempfile.mkstemp(dir=model_dir, prefix=".prompt_format")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(contents, out, indent=2, ensure_ascii=False)
            out.write("\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", type=pathlib.Path, nargs="+",
                        help="a Hugging Face model directory")
    parser.add_argument("--template", type=pathlib.Path, help="take this template file instead")
    parser.add_argument("--bos-token", help="text of the token that starts a sequence")
    args = parser.parse_args()
    failed = False
    for model_dir in args.model_dir:
        try:
            if not model_dir.is_dir():
                raise PromptFormatError(f"{model_dir} is not a directory")
            print(write_prompt_format(model_dir,
                                      prompt_format(model_dir, args.template, args.bos_token)))
        except (PromptFormatError, OSError) as error:
            print(f"render_prompt_format: {error}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
