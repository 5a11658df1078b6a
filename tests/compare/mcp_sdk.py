"""./dev mcp runs other clients of `stageline mcp`: the official SDK, in both eras, and the Inspector's command line.
Needs a Python that has PyPI's mcp (STAGELINE_MCP_PYTHON, or the environment that ./dev mcp makes); run with it:
mcp_sdk.py STAGELINE [NODE INSPECTOR]. Prints a closing line with the counts; what is not installed is skipped."""
import asyncio
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / 'tests/golden'
PROFILE, PIPELINE = GOLDEN / 'readers/kineto/input', GOLDEN / 'readers/paddle-log/input'
HANDSHAKE, ENVELOPE = '2025-11-25', '2026-07-28'
TOOLS = 13
KERNELS = 'SELECT count(*), sum(dur_ns) FROM kernels'


def reported(result):
    return result.structured_content if hasattr(result, 'structured_content') else result.structuredContent


def failed(result):
    return result.is_error if hasattr(result, 'is_error') else result.isError


async def talk(ask, program):
    """Holds one conversation through ask(tool, arguments), in either era, and checks the answers."""
    opened = reported(await ask('open', {'paths': [str(PROFILE)]}))
    assert opened['trace'] == 't1', opened
    count = reported(await ask('sql', {'trace': 't1', 'query': KERNELS}))
    done = subprocess.run([program, 'sql', PROFILE, KERNELS, '--format', 'json', '-q'], capture_output=True, check=True)
    own = json.loads(done.stdout)
    assert count['rows'] == own['rows'], count
    claims = [{'text': 'kernels', 'handle': count['handle'], 'expect': {'value': own['rows'][0][0]}}]
    assert reported(await ask('verify', {'trace': 't1', 'claims': claims}))['claims'][0]['verdict'] == 'holds'
    assert reported(await ask('ask', {'trace': 't1', 'analysis': 'waterfall'}))['reason'] == 'no_pipeline_cells'
    wrong = await ask('sql', {'trace': 't1', 'query': 'SELECT durns FROM kernels'})
    assert failed(wrong) and 'dur_ns' in reported(wrong)['hint'], wrong
    assert failed(await ask('open', {'paths': ['/etc/passwd']}))
    # Each of the other tools once; the SDK checks every answer against its outputSchema.
    await ask('open', {'paths': [str(PIPELINE)]})
    slices = reported(await ask('slices', {'trace': 't1', 'name': 'aten::*', 'rows': 2}))
    calls = {'schema': {}, 'analyses': {'about': 'idle'}, 'explain': {}, 'slice': {'id': slices['rows'][0][0]}}
    for tool, arguments in calls.items():
        assert not failed(await ask(tool, {'trace': 't1', **arguments})), tool
    for tool in ('what_if', 'explain'):
        assert not failed(await ask(tool, {'trace': 't2'})), tool
    assert reported(await ask('diff', {'a': 't2', 'b': 't2'}))['beyond_noise'] is False
    chart = await ask('chart', {'trace': 't2', 'width': 600})
    assert [c.type for c in chart.content] == ['text', 'image'], chart
    return count['handle'], count


async def pages(client, handle, count):
    """Reads resources and prompts with the SDK."""
    text = (await client.read_resource('stageline://handle/' + handle)).contents[0].text
    assert json.loads(text) == count, text
    listed = [str(r.uri) for r in (await client.list_resources()).resources]
    assert 'stageline://skill/SKILL.md' in listed and 'stageline://run/t1' in listed, listed
    prompts = [p.name for p in (await client.list_prompts()).prompts]
    assert 'first_look' in prompts, prompts
    assert 'explain' in (await client.get_prompt('first_look')).messages[0].content.text


async def handshake(program):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    async with stdio_client(StdioServerParameters(command=program, args=['mcp', '--root', str(GOLDEN)])) as (read, write):
        async with ClientSession(read, write) as session:
            first = await session.initialize()
            assert (getattr(first, 'protocol_version', None) or first.protocolVersion) == HANDSHAKE, first
            assert len((await session.list_tools()).tools) == TOOLS
            await pages(session, *await talk(lambda tool, arguments: session.call_tool(tool, arguments), program))


async def envelope(program):
    from mcp import StdioServerParameters
    from mcp.client import Client
    async with Client(StdioServerParameters(command=program, args=['mcp', '--root', str(GOLDEN)]), mode=ENVELOPE) as client:
        assert len((await client.list_tools()).tools) == TOOLS
        await pages(client, *await talk(lambda tool, arguments: client.call_tool(tool, arguments), program))


def inspector(program, node, script):
    """The Inspector's command line: the tools, calls, a resource."""
    def ask(*words):
        done = subprocess.run([node, script, '--cli', program, 'mcp', '--root', str(GOLDEN), *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
        return json.loads(done.stdout)

    tools = ask('--method', 'tools/list')['tools']
    assert len(tools) == TOOLS and all(t['outputSchema']['type'] == 'object' for t in tools), tools
    opened = ask('--method', 'tools/call', '--tool-name', 'open', '--tool-arg', f'paths={json.dumps([str(PROFILE)])}')
    assert opened['structuredContent']['trace'] == 't1' and not opened.get('isError'), opened
    refused = ask('--method', 'tools/call', '--tool-name', 'sql', '--tool-arg', 'trace=t1', '--tool-arg', 'query=SELECT 1')
    assert refused['isError'] and 'open' in refused['structuredContent']['hint'], refused
    assert 'stageline://skill/SKILL.md' in [r['uri'] for r in ask('--method', 'resources/list')['resources']]
    assert 'first_look' in [p['name'] for p in ask('--method', 'prompts/list')['prompts']]


def main(program, *inspected):
    passed = skipped = 0
    failures = []

    def attempt(name, body):
        nonlocal passed
        try:
            body()
            passed += 1
        except BaseException as error:  # noqa: BLE001 an exception group may be a BaseException
            inner = error
            while getattr(inner, 'exceptions', None):
                inner = inner.exceptions[0]
            failures.append(name)
            print(f'FAILED {name}: {type(inner).__name__}: {inner}')

    try:
        import mcp  # noqa: F401
        for one in (handshake, envelope):
            attempt(one.__name__, lambda one=one: asyncio.run(asyncio.wait_for(one(program), 120)))
    except ImportError:
        print('this Python has no mcp: the SDK is skipped')
        skipped += 2
    if inspected:
        attempt('inspector', lambda: inspector(program, *inspected))
    else:
        print('no inspector given: its command line is skipped')
        skipped += 1
    print(f'{passed} passed, {len(failures)} failed, {skipped} skipped')
    return bool(failures)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
