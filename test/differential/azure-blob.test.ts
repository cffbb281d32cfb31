import { azureBlobHarness } from '../harnesses/azure-blob.ts'
import { differ } from './differ.ts'
import { asOneClient, UNAGED } from './one-client.ts'

// The age of a blob is known to 3 s, which is longer than the leases of the test.
differ(asOneClient(azureBlobHarness()), UNAGED)
