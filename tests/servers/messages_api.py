"""Whether a request to Anthropic's Messages API is one that the provider accepts: the reason why not, or None."""

import transcript

BLOCKS = {
    "user": {"text", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}


def fault(request):
    if not isinstance(request, dict):
        return "the request is no object"
    if not isinstance(request.get("model"), str) or not request["model"]:
        return "model is no text"
    if not isinstance(request.get("max_tokens"), int) or request["max_tokens"] < 1:
        return "max_tokens is no number"
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages is no list, or empty"
    return tools_fault(request.get("tools", [])) or messages_fault(messages)


def tools_fault(tools):
    for tool in tools:
        if set(tool) - {"name", "description", "input_schema"}:
            return "a tool has a member that the API does not know"
        if not isinstance(tool.get("name"), str) or not transcript.NAME.fullmatch(tool["name"]):
            return f"a tool has the name {tool.get('name')!r}"
        if not isinstance(tool.get("input_schema"), dict) or tool["input_schema"].get("type") != "object":
            return f"the input_schema of {tool['name']} is no object's"
    return None


def messages_fault(messages):
    due = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if set(message) != {"role", "content"} or role not in BLOCKS:
            return f"message {place} is not {{role, content}} of a known role"
        if place == 0 and role != "user":
            return "the first message is not the user's"
        if place and role == messages[place - 1]["role"]:
            return f"message {place} is another one of the {role}"
        blocks = message["content"]
        if not isinstance(blocks, list) or not blocks:
            return f"message {place} has no blocks"
        if any(block.get("type") not in BLOCKS[role] for block in blocks):
            return f"message {place} has a block that the {role} cannot send"
        if any(block["type"] == "text" and not block.get("text") for block in blocks):
            return f"message {place} has a text that is empty"
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if answered != due:
            return f"message {place} answers {answered} where {due} is due"
        if [block["type"] for block in blocks[: len(due)]] != ["tool_result"] * len(due):
            return f"message {place} has something before its tool results"
        due = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if any(not isinstance(block.get("input"), dict) for block in blocks if block["type"] == "tool_use"):
            return f"message {place} has an input that is no object"
    return f"the answers to {due} are missing at the end" if due else None


def reply(content, model):
    """The response whose blocks are this text."""
    reason = "tool_use" if '"tool_use"' in content else "end_turn"
    return (
        '{"id":"msg_1","type":"message","role":"assistant","model":"%s","content":%s,"stop_reason":"%s",'
        '"stop_sequence":null,"usage":{"input_tokens":11,"output_tokens":7}}' % (model, content, reason)
    )
