import { azureBlobHarness } from '../../../../test/harnesses/azure-blob.ts'
import { conform } from '../../../../test/harnesses/conform.ts'

conform(azureBlobHarness())
